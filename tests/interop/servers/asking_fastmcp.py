"""The server of the suite `upstream` on FastMCP: it asks in results, as servers of 2026-07-28 do."""

import asyncio

from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from mcp_types import (
    CreateMessageRequest,
    CreateMessageRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    InputRequiredResult,
    ListRootsRequest,
    SamplingMessage,
    TextContent,
)

app = FastMCP("interop")

NAME = ElicitRequest(
    params=ElicitRequestFormParams(
        message="What is your name?",
        requested_schema={"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
    )
)
CAPITAL = CreateMessageRequest(
    params=CreateMessageRequestParams(
        messages=[
            SamplingMessage(role="user", content=TextContent(type="text", text="What is the capital of France?"))
        ],
        max_tokens=10,
    )
)


def asking(answers, **questions):
    return InputRequiredResult(input_requests=questions, request_state="asked") if answers is None else None


@app.tool
def greet(name: str) -> str:
    return f"Hello, {name}!"


@app.tool
def fail() -> str:
    raise ToolError("failed on purpose")


@app.tool
async def count(ctx: Context) -> str:
    for step in range(1, 4):
        await ctx.report_progress(step, 3)
        # The official TypeScript client drops progress that it reads together with the result.
        await asyncio.sleep(0.1)
    return "counted"


@app.tool(output_schema=None)
def ask(ctx: Context) -> str:
    if asked := asking(ctx.input_responses, name=NAME):
        return asked
    return ctx.input_responses["name"].content["name"]


@app.tool(output_schema=None)
def together(ctx: Context) -> str:
    if asked := asking(ctx.input_responses, name=NAME, capital=CAPITAL, roots=ListRootsRequest()):
        return asked
    answers = ctx.input_responses
    return f"{answers['name'].content['name']} {answers['capital'].content.text} {answers['roots'].roots[0].uri}"


@app.resource("peer://about")
def about() -> str:
    return "A server to test with."


@app.resource("peer://items/{id}")
def item(id: str) -> str:
    return f"item {id}"


@app.prompt
def review(name: str) -> str:
    return f"Review {name}."


app.run(show_banner=False)
