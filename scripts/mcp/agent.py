"""Drives `gripper` as the public Python SDK of another agent drives that agent, with a model that plays a script."""
import asyncio
import json
import os
import pathlib
import sys
import tempfile

from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    PermissionResultAllow,
    PermissionResultDeny,
    ResultMessage,
    StreamEvent,
    SystemMessage,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
    query,
)

GRIPPER = sys.argv[1]


def text(words):
    return {"content": [{"type": "text", "text": words}]}


def call(name, **values):
    return {"content": [{"type": "tool_use", "name": name, "input": values}]}


def options(folder, answers, **more):
    script = folder / "script.jsonl"
    script.write_text("".join(json.dumps(answer) + "\n" for answer in answers))
    project = folder / "project"
    project.mkdir(exist_ok=True)
    environment = {"HOME": str(folder), "PATH": os.environ["PATH"]}
    return ClaudeAgentOptions(cli_path=GRIPPER, cwd=project, env=environment, model=f"scripted:{script}", **more)


async def collect(prompt, chosen):
    return [message async for message in query(prompt=prompt, options=chosen)]


async def shapes(folder):
    """Every kind of message is read by the SDK's own parser."""
    answers = [call("Glob", pattern="*"), text("Nothing here.")]
    messages = await collect("look", options(folder, answers, include_partial_messages=True))
    kinds = {type(message) for message in messages}
    assert {SystemMessage, StreamEvent, AssistantMessage, UserMessage, ResultMessage} <= kinds, kinds
    called = [b.id for m in messages if isinstance(m, AssistantMessage) for b in m.content if isinstance(b, ToolUseBlock)]
    answered = [b.tool_use_id for m in messages if isinstance(m, UserMessage) for b in m.content if isinstance(b, ToolResultBlock)]
    assert called == answered and len(called) == 1, (called, answered)
    assert messages[-1].result == "Nothing here." and not messages[-1].is_error
    return messages[-1].session_id


async def resumed(folder, session):
    last = (await collect("again", options(folder, [text("Still nothing.")], resume=session)))[-1]
    assert (last.session_id, last.result) == (session, "Still nothing."), last


async def permissions(folder):
    """What the callback says is what happens."""
    for answer, written in [(PermissionResultAllow(), True), (PermissionResultDeny(message="no"), False)]:
        path = folder / "project" / "new.txt"
        path.unlink(missing_ok=True)
        asked = []

        async def decide(tool, given, context):
            asked.append((tool, given["content"], bool(context.suggestions)))
            return answer

        chosen = options(folder, [call("Write", file_path=str(path), content="x"), text("Done.")], can_use_tool=decide)
        async with ClaudeSDKClient(options=chosen) as client:
            await client.query("write")
            last = [message async for message in client.receive_response()][-1]
        assert asked == [("Write", "x", True)], asked
        assert path.exists() == written and len(last.permission_denials) == (not written), last


async def delivered(folder):
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    chosen = options(folder, [call("StructuredOutput", n=3)], output_format={"type": "json_schema", "schema": schema})
    assert (await collect("count", chosen))[-1].structured_output == {"n": 3}


async def interrupted(folder):
    chosen = options(folder, [call("Sleep", seconds=60), text("Awake.")], allowed_tools=["Sleep"])
    async with ClaudeSDKClient(options=chosen) as client:
        await client.query("sleep")
        async for message in client.receive_response():
            if isinstance(message, AssistantMessage):
                await client.interrupt()
            last = message
        assert last.is_error, last
        await client.set_permission_mode("plan")
        await client.query("wake up")
        assert [message async for message in client.receive_response()][-1].result == "Awake."


async def main():
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        session = await shapes(folder)
        await resumed(folder, session)
        await permissions(folder)
        await delivered(folder)
        await interrupted(folder)
    print("shapes, resume, permissions, structured output, interrupt")


asyncio.run(main())
