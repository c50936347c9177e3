"""A conversation of `fencepost mcp` with the client of the Model Context Protocol's own package, `mcp`."""

import asyncio
from datetime import timedelta

import pytest

from fencepost._program import program
from test_fencepost import BROKEN, LAUNCH, RACY, TEST

mcp = pytest.importorskip("mcp")
TOOLS = ["check_kernel", "is_outcome_allowed", "explain_race", "weakest_fences", "compare_models"]


async def conversation():
    from mcp.client.stdio import stdio_client

    server = mcp.StdioServerParameters(command=program(), args=["mcp"])
    said = []

    async def call(client, tool, **arguments):
        async def progress(*told):
            said.append(told)

        result = await client.call_tool(tool, arguments, progress_callback=progress)
        return result.model_dump(by_alias=True)

    async with stdio_client(server) as (reads, writes), mcp.ClientSession(reads, writes) as client:
        hello = (await client.initialize()).model_dump(by_alias=True)
        tools = (await client.list_tools()).model_dump(by_alias=True)["tools"]
        kernel = await call(client, "check_kernel", source=RACY, language="cuda", launch=LAUNCH)
        race = await call(client, "explain_race", source=RACY, language="cuda", launch=LAUNCH)
        allowed = await call(client, "is_outcome_allowed", test=BROKEN, model="ptx")
        advice = await call(client, "weakest_fences", test=TEST)
        models = await call(client, "compare_models", test=BROKEN, models=["ptx", "sc"])
        wrong = await call(client, "is_outcome_allowed", test="name = 1", model="ptx")
    return hello, tools, kernel, race, allowed, advice, models, wrong


def test_the_client_of_the_package_gets_schemas_answers_and_errors():
    found = asyncio.run(asyncio.wait_for(conversation(), timedelta(minutes=2).total_seconds()))
    hello, tools, kernel, race, allowed, advice, models, wrong = found
    assert hello["serverInfo"]["name"] == "fencepost"
    assert [tool["name"] for tool in tools] == TOOLS
    assert all(tool["inputSchema"]["type"] == "object" for tool in tools)

    def verdicts(result):
        assert not result["isError"], result
        return [answer["verdict"] for answer in result["structuredContent"]["answers"]]

    assert verdicts(kernel)[0] == "racy" and "__syncthreads();" in kernel["content"][0]["text"]
    assert "threads race on `s[" in race["content"][0]["text"]
    assert verdicts(allowed) == ["allowed"]
    assert "`.gpu` in place of `.cta`" in allowed["content"][0]["text"]
    assert not advice["isError"] and advice["content"][0]["text"]
    assert {"allowed", "forbidden"} <= set(verdicts(models))
    assert wrong["isError"] and "error" in wrong["content"][0]["text"]
