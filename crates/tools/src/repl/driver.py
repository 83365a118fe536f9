# Reads requests from descriptor 3, one JSON text a line: an object with code, or null to interrupt what runs.
# Answers on standard output with the mark and one JSON object, behind whatever the code has printed.
import ast, json, linecache, os, queue, signal, sys, threading, traceback

MARK, MOST = sys.argv[1], 10_000
NAME = "<repl>"
requests, busy, main = queue.SimpleQueue(), False, threading.main_thread().ident
scope = {"__name__": "__main__", "__builtins__": __builtins__}
sys.argv[:] = [""]
os.set_inheritable(3, False)


def listen():
    with open(3, encoding="utf-8") as lines:
        for line in lines:
            request = json.loads(line)
            if request is None:
                signal.pthread_kill(main, signal.SIGINT)
            else:
                requests.put(request["code"])
    os._exit(0)


def interrupt(number, frame):
    # An interrupt that comes too late must not cost the answer.
    if busy:
        raise KeyboardInterrupt


def evaluate(code):
    tree = ast.parse(code, NAME)
    linecache.cache[NAME] = (len(code), None, code.splitlines(True), NAME)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, NAME, "exec"), scope)
    if last is None:
        return None
    value = eval(compile(ast.Expression(last.value), NAME, "eval"), scope)
    scope["_"] = value
    return None if value is None else repr(value)


def answer(code):
    global busy
    try:
        busy = True
        value = evaluate(code)
        busy = False
        return {"value": value and value[:MOST], "error": None}
    except SystemExit:
        raise
    except BaseException as error:
        busy = False
        # The frames of this file are of no interest.
        trace = error.__traceback__
        while trace and trace.tb_frame.f_code.co_filename != NAME:
            trace = trace.tb_next
        text = "".join(traceback.format_exception(type(error), error, trace))
        return {"value": None, "error": text[-MOST:]}


signal.signal(signal.SIGINT, interrupt)
threading.Thread(target=listen, daemon=True).start()
while True:
    told = answer(requests.get())
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except Exception:
        pass
    frame = ("\x1e" + MARK + json.dumps(told) + "\n").encode()
    while frame:
        frame = frame[os.write(1, frame):]
