"""A session of the official Python SDK with `gripper mcp`: session.py GRIPPER [URL TOKEN].

Over standard input and output without an address, else over HTTP to a server that serves the folder
this runs in. Once in the newest revision, in which questions come as answers, and once in the last
one with a handshake, in which they come as requests.
"""

import base64
import os
import pathlib
import subprocess
import sys

import anyio
import httpx2
import mcp_types as types
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
HERE = pathlib.Path.cwd()


def client(mode, answer=None):
    asked = []

    async def elicit(_context, params):
        asked.append(params.message)
        if answer == "decline":
            return types.ElicitResult(action="decline")
        return types.ElicitResult(action="accept", content={"decision": answer})

    if len(sys.argv) > 2:
        http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {sys.argv[3]}"}, timeout=60)
        server = streamable_http_client(sys.argv[2], http_client=http)
    else:
        env = {"HOME": os.environ["HOME"]}
        server = StdioServerParameters(command=sys.argv[1], args=["mcp"], env=env, cwd=HERE)
    # Clients of the revision without sessions are told apart by their names.
    info = types.Implementation(name=f"{mode} {answer}", version="1")
    return Client(server, mode=mode, client_info=info, elicitation_callback=elicit if answer else None), asked


def text(result):
    return "".join(block.text for block in result.content if block.type == "text")


def running(command):
    return subprocess.run(["pgrep", "-f", f"^{command}"], capture_output=True, check=False).stdout


async def bash(session, command, **more):
    return await session.call_tool("Bash", {"command": command, "description": "a test"}, **more)


async def files(session):
    names = {tool.name for tool in (await session.list_tools()).tools}
    assert {"Bash", "Edit", "Read"} <= names, names
    target = HERE / "notes.txt"
    target.write_text("one\ntwo\n")
    assert "two" in text(await session.call_tool("Read", {"file_path": str(target)}))
    edit = {"file_path": str(target), "old_string": "two", "new_string": "three"}
    edited = await session.call_tool("Edit", edit)
    assert not edited.is_error and target.read_text() == "one\nthree\n", text(edited)
    (HERE / "dot.png").write_bytes(base64.b64decode(PNG))
    seen = await session.call_tool("Read", {"file_path": str(HERE / "dot.png")})
    assert any(block.type == "image" for block in seen.content), seen
    resources = {str(resource.uri) for resource in (await session.list_resources()).resources}
    assert "gripper://todos" in resources, resources
    todos = (await session.read_resource("gripper://todos")).contents[0]
    assert (todos.mime_type, todos.text) == ("application/json", "[]"), todos


async def prompts(session):
    listed = {prompt.name: prompt for prompt in (await session.list_prompts()).prompts}
    told = [(argument.name, argument.required) for argument in listed["greet"].arguments]
    assert told == [("who", True), ("how", False)], told
    filled = await session.get_prompt("greet", {"who": "the world"})
    assert filled.messages[0].content.text == "Greet the world, now.", filled
    try:
        await session.get_prompt("greet", {})
        raise AssertionError("it says nothing of what is missing")
    except MCPError as error:
        assert error.code == -32602 and "greet needs who" in str(error), error


async def slow(session):
    reports = []

    async def report(progress, total, message):
        reports.append((progress, total, message))

    done = await bash(session, "for n in 1 2 3; do echo $n; sleep 0.7; done", progress_callback=report)
    assert "3" in text(done) and reports, (done, reports)
    assert reports == sorted(reports, key=lambda told: told[0]), reports
    with anyio.move_on_after(2):
        await bash(session, "sleep 4711")
        raise AssertionError("a sleep of an hour ended")
    with anyio.fail_after(10):
        while running("sleep 4711"):
            await anyio.sleep(0.1)


async def run(mode):
    session, asked = client(mode, "allow once")
    async with session:
        await files(session)
        await prompts(session)
        questions = len(asked)
        made = HERE / "made"
        made.unlink(missing_ok=True)
        assert not (await bash(session, "touch made")).is_error and made.exists()
        assert len(asked) == questions + 1 and "touch made" in asked[-1], asked
        await slow(session)
    session, asked = client(mode, "decline")
    async with session:
        refused = await bash(session, "touch refused")
        assert refused.is_error and len(asked) == 1 and not (HERE / "refused").exists(), refused
    session, asked = client(mode)
    async with session:
        refused = await bash(session, "touch refused")
        assert refused.is_error and not (HERE / "refused").exists(), refused
        assert "Bash(touch" in text(refused), text(refused)
        return session.protocol_version


command = pathlib.Path(os.environ["HOME"], ".gripper/commands/greet.md")
command.parent.mkdir(parents=True, exist_ok=True)
command.write_text("---\ndescription: Greets: somebody\nargument-hint: <who> [how]\n---\nGreet $who, now$how.\n")
for mode in ("auto", "legacy"):
    print("python sdk,", "http," if len(sys.argv) > 2 else "stdio,", anyio.run(run, mode))
