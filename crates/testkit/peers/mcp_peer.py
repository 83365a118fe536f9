"""A server for tests: honest or not, as its arguments say.

    mcp_peer.py [stdio|http|sse] [habit...]

On http and sse it listens on a free port of the loopback and prints the address.
"""
import json, os, sys, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlparse

WAY = sys.argv[1] if len(sys.argv) > 1 else "stdio"
HABITS = sys.argv[2:]
OBJECT = {"type": "object"}
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
lock = threading.Lock()
calls = {"n": 0}
issued = {"n": 0, "out": 0}
asked = {}


def recursive(depth):
    schema = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def tools():
    listed = [
        {"name": "echo", "title": "Echo", "description": "Says it again.\nAll of it.",
         "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
         "annotations": {"readOnlyHint": True}},
        {"name": "add", "description": "Adds.", "inputSchema": {"type": "object", "properties": {
            "a": {"type": "number"}, "b": {"type": "number"}}},
         "outputSchema": {"type": "object", "properties": {"sum": {"type": "number"}}}},
    ]
    for name in ["fail", "env", "picture", "sound", "die", "hang", "slow", "huge", "badjson", "wrongid", "long", "ask", "page",
                 "roots", "sample", "grow", "flood", "cancelled", "refuse"]:
        listed.append({"name": name, "description": name, "inputSchema": OBJECT})
    if "always" in HABITS:
        listed.append({"name": "near", "inputSchema": OBJECT, "_meta": {"anthropic/alwaysLoad": True}})
        listed.append({"name": "person", "inputSchema": OBJECT, "_meta": {"anthropic/requiresUserInteraction": True}})
        listed.append({"name": "small", "inputSchema": OBJECT, "_meta": {"anthropic/maxResultSizeChars": 50}})
    if "dotted" in HABITS:
        listed += [{"name": name, "inputSchema": OBJECT} for name in ["a/b", "c.d", "c_d"]]
    if "hostile" in HABITS:
        many = {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(100_000)}}
        self_ref = {"type": "object", "$ref": "#"}
        for name, schema in [("a b", OBJECT), ("a.b", OBJECT), ("ä__ü", OBJECT), ("x" * 300, OBJECT), ("", OBJECT),
                             ("echo", OBJECT), ("many", many), ("deep", recursive(50)), ("self", self_ref)]:
            listed.append({"name": name, "description": "d" * 5000, "inputSchema": schema})
    if os.path.exists("grown"):
        listed.append({"name": "grown", "description": "new", "inputSchema": OBJECT})
    return listed


def text(words, **more):
    return {"content": [{"type": "text", "text": words}], **more}


class Peer:
    """One conversation; `send` takes a message."""

    def __init__(self, send):
        self.send, self.dead = send, threading.Event()

    def answer(self, id, result):
        self.send({"jsonrpc": "2.0", "id": id, "result": result})

    def notify(self, method, params):
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def request(self, method, params):
        with lock:
            calls["n"] += 1
            id = f"peer-{calls['n']}"
        asked[id] = [threading.Event(), None]
        self.send({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        asked[id][0].wait(20)
        return asked.pop(id)[1]

    def take(self, message):
        method, id = message.get("method"), message.get("id")
        if method is None:
            if id in asked:
                asked[id][1] = message.get("result", message.get("error"))
                asked[id][0].set()
        elif method == "notifications/cancelled":
            open("cancelled", "a").write(json.dumps(message["params"]) + "\n")
        elif id is None:
            pass
        elif method == "initialize":
            info = {"name": "peer", "version": "1.2.3"}
            capabilities = {"tools": {"listChanged": True}, "resources": {}, "prompts": {}}
            version = message["params"]["protocolVersion"]
            self.answer(id, {"protocolVersion": version, "capabilities": capabilities, "serverInfo": info})
        elif method == "ping":
            self.answer(id, {})
        elif method == "tools/list":
            if "endless" in HABITS:
                listed = {"tools": [{"name": f"t{time.time_ns()}", "inputSchema": OBJECT}], "nextCursor": "more"}
                return self.answer(id, listed)
            self.answer(id, {"tools": tools()})
        elif method == "resources/list":
            one = {"uri": "peer://note", "name": "note", "mimeType": "text/plain", "description": "a note"}
            self.answer(id, {"resources": [one]})
        elif method == "resources/read":
            uri = message["params"]["uri"]
            self.answer(id, {"contents": [{"uri": uri, "mimeType": "text/plain", "text": "what is noted"}]})
        elif method == "prompts/list":
            greet = {"name": "greet", "description": "greets",
                     "arguments": [{"name": "who", "required": True}, {"name": "how"}]}
            if "params" in message and message["params"].get("cursor") == "more":
                return self.answer(id, {"prompts": [{"name": "odd one"}, greet]})
            self.answer(id, {"prompts": [greet, {"name": "scene"}, {"name": "long"}], "nextCursor": "more"})
        elif method == "prompts/get":
            self.prompt(id, message["params"])
        elif method == "tools/call":
            threading.Thread(target=self.call, args=(id, message["params"]), daemon=True).start()
        else:
            self.send({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "no such method"}})

    def prompt(self, id, params):
        given = params.get("arguments", {})
        says = lambda content, role="user": {"role": role, "content": content}
        words = lambda text, role="user": says({"type": "text", "text": text}, role)
        if params["name"] == "greet":
            messages = [words(f"Greet {given['who']}, {given.get('how', 'plainly')}.")]
        elif params["name"] == "scene":
            messages = [words("What is this?"), says({"type": "image", "mimeType": "image/png", "data": PIXEL}),
                        says({"type": "resource", "resource": {"uri": "peer://note", "text": "what is noted"}}),
                        words("A pixel.", "assistant")]
        elif params["name"] == "long":
            messages = [words("y" * 2_000_000)]
        else:
            messages = [words("odd")]
        self.answer(id, {"messages": messages})

    def call(self, id, params):
        name, given = params["name"], params.get("arguments", {})
        token = params.get("_meta", {}).get("progressToken")
        progress = lambda n: self.notify("notifications/progress", {
            "progressToken": token, "progress": n, "total": 3, "message": f"step {n}"})
        if name == "echo":
            self.answer(id, text(given.get("text", ""), _meta={"seen": True}))
        elif name == "add":
            total = given.get("a", 0) + given.get("b", 0)
            self.answer(id, text(str(total), structuredContent={"sum": total}))
        elif name == "fail":
            self.answer(id, text("it went wrong", isError=True))
        elif name == "refuse":
            self.send({"jsonrpc": "2.0", "id": id, "error": {"code": -32602, "message": "not like this"}})
        elif name == "env":
            self.answer(id, text(json.dumps({"env": dict(os.environ), "args": HABITS, "cwd": os.getcwd()})))
        elif name == "picture":
            self.answer(id, {"content": [{"type": "image", "mimeType": "image/png", "data": PIXEL},
                                         {"type": "resource_link", "uri": "peer://note", "name": "note"}]})
        elif name == "sound":
            self.answer(id, {"content": [{"type": "audio", "mimeType": "audio/wav", "data": "UklGRg=="}]})
        elif name == "die":
            sys.stderr.write("I cannot go on\n")
            sys.stderr.flush()
            os._exit(3)
        elif name in ("hang", "cancelled"):
            open("hanging", "w").write("x")
        elif name == "slow":
            for step in (1, 2, 3, 4):
                time.sleep(1.4)
                progress(step)
            self.answer(id, text("at last"))
        elif name == "huge":
            whole = '{"jsonrpc": "2.0", "id": %s, "result": {"content": [{"type": "text", "text": "%s"}]}}'
            large = "x" * 100_000_000
            self.send(whole % (id, large)) if WAY == "stdio" else self.answer(id, text(large[:20_000_000]))
        elif name == "long":
            self.answer(id, text("y" * 200_000))
        elif name == "badjson":
            self.send("this is { not json")
        elif name == "wrongid":
            self.answer(999_999, text("for somebody else"))
        elif name == "flood":
            for n in range(20_000):
                self.notify("notifications/message", {"level": "info", "data": "noise" * 20})
                progress(n) if n % 100 == 0 else None
            self.answer(id, text("flooded"))
        elif name == "ask":
            schema = {"type": "object", "properties": {"colour": {"type": "string", "default": "blue"}},
                      "required": ["colour"]}
            got = self.request("elicitation/create", {"mode": "form", "message": "Which colour?",
                                                      "requestedSchema": schema})
            self.answer(id, text(json.dumps(got)))
        elif name == "page":
            got = self.request("elicitation/create", {"mode": "url", "message": "Sign in", "elicitationId": "1",
                                                      "url": "https://example.com/sign-in"})
            self.answer(id, text(json.dumps(got)))
        elif name == "roots":
            self.answer(id, text(json.dumps(self.request("roots/list", {}))))
        elif name == "sample":
            message = {"role": "user", "content": {"type": "text", "text": "hi"}}
            self.answer(id, text(json.dumps(self.request("sampling/createMessage",
                                                         {"messages": [message], "maxTokens": 5}))))
        elif name == "grow":
            open("grown", "w").write("x")
            self.notify("notifications/tools/list_changed", {})
            time.sleep(0.3)
            self.answer(id, text("grown"))
        else:
            self.answer(id, text(name))


def stdio():
    def send(message):
        with lock:
            sys.stdout.write((message if isinstance(message, str) else json.dumps(message)) + "\n")
            sys.stdout.flush()
    if "silent" in HABITS:
        time.sleep(3600)
    if "noise" in HABITS:
        sys.stderr.write("noise\n" * 100_000)
        send("starting up, please wait")
    if "quits" in HABITS:
        sys.stderr.write("no licence found\n")
        sys.exit(7)
    if "child" in HABITS:
        import subprocess
        open("child.pid", "w").write(str(subprocess.Popen(["sleep", "600"]).pid))
    peer = Peer(send)
    for line in sys.stdin:
        peer.take(json.loads(line))


class Web(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    streams = {}

    def log_message(self, *_):
        pass

    def handle(self):
        try:
            super().handle()
        except ConnectionError:
            pass

    def reply(self, status, body=b"", kind="application/json", **headers):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def sign_in(self, body):
        """The server's own place to sign in, as far as `oauth` among the habits wants one. True if that was it."""
        if "oauth" not in HABITS or self.path in ("/mcp", "/sse") or self.path.startswith("/post"):
            return False
        here = f"http://{self.headers['Host']}"
        asked = {name: values[0] for name, values in parse_qs(urlparse(self.path).query or body).items()}
        path = urlparse(self.path).path
        known = {
            "/.well-known/oauth-protected-resource": {"resource": f"{here}/mcp", "authorization_servers": [here]},
            "/.well-known/oauth-authorization-server": {
                "issuer": here, "authorization_endpoint": f"{here}/authorize",
                "token_endpoint": "http://192.0.2.1/token" if "leaky" in HABITS else f"{here}/token",
                "registration_endpoint": f"{here}/register", "code_challenge_methods_supported": ["S256"]},
            "/register": {"client_id": "c", "client_secret": "hush", "redirect_uris": []},
        }
        if path == "/authorize":
            answer = "error=access_denied" if "refuses" in HABITS else "code=k"
            back = f"{asked['redirect_uri']}?{answer}&state={asked['state']}"
            self.reply(302, Location=back)
        elif path == "/token":
            issued["n"] += 1
            fits = asked.get("code") == "k" or asked.get("refresh_token") == f"again{issued['n'] - 1}"
            token = {"access_token": f"secret{issued['n']}", "token_type": "bearer", "refresh_token": f"again{issued['n']}"}
            self.reply(200 if fits else 400, json.dumps(token if fits else {"error": "invalid_grant"}).encode())
        elif path == "/expire":
            issued["out"] = issued["n"]
            self.reply(200)
        else:
            self.reply(200 if path in known else 404, json.dumps(known.get(path)).encode())
        return True

    def is_known(self):
        if "token" in HABITS:
            return self.headers.get("Authorization") == "Bearer sesame"
        now = issued["n"] if issued["n"] > issued["out"] else None
        return "oauth" not in HABITS or self.headers.get("Authorization") == f"Bearer secret{now}"

    def do_GET(self):
        if self.sign_in(""):
            return
        if WAY != "sse" or not self.path.startswith("/sse"):
            return self.reply(405)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        where = "http://127.0.0.2:1/post" if "elsewhere" in HABITS else "/post?id=1"
        self.wfile.write(f"event: endpoint\ndata: {where}\n\n".encode())
        self.wfile.flush()
        done = threading.Event()

        def send(message):
            with lock:
                try:
                    self.wfile.write(f"event: message\ndata: {json.dumps(message)}\n\n".encode())
                    self.wfile.flush()
                except ConnectionError:
                    done.set()
        Web.streams["1"] = Peer(send)
        done.wait()

    def do_DELETE(self):
        self.reply(200)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.sign_in(body.decode()):
            return
        if not self.is_known():
            return self.reply(401, WWW_Authenticate="Bearer")
        message = json.loads(body)
        if WAY == "sse":
            if not self.path.startswith("/post"):
                return self.reply(404)
            Web.streams["1"].take(message)
            return self.reply(202)
        if "id" not in message or "method" not in message:
            Peer(lambda _: None).take(message)
            return self.reply(202)
        out, done = [], threading.Event()

        def send(sent):
            out.append(sent)
            if isinstance(sent, dict) and sent.get("id") == message["id"]:
                done.set()
        Peer(send).take(message)
        done.wait(60)
        if len(out) == 1:
            return self.reply(200, json.dumps(out[0]).encode(), Mcp_Session_Id="s1")
        body = "".join(f"data: {json.dumps(one)}\n\n" for one in out).encode()
        self.reply(200, body, "text/event-stream", Mcp_Session_Id="s1")


if WAY == "stdio":
    stdio()
else:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Web)
    print(f"http://127.0.0.1:{server.server_port}/{'sse' if WAY == 'sse' else 'mcp'}", flush=True)
    server.serve_forever()
