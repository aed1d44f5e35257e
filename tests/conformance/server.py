"""The fixture server in Python: the components that the official suite requires, and a few tools for other tests."""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
from pathlib import Path
from typing import Annotated, Any

import serving

from gudgeon import Context, Header, HttpRequest, HttpResponse, Server, SyncContext, ToolError, ask
from gudgeon.ask import Question
from gudgeon.auth import OAuthProxy
from gudgeon.types import Accepted, Audio, EmbeddedResource, Image, Message, user

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
SILENCE = base64.b64decode("UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=")
SCHEMA = json.loads((Path(__file__).parent / "json_schema_2020_12.json").read_text())
PAUSE = 0.05  # seconds; official TypeScript clients lose a notification that is read together with the result

options = argparse.ArgumentParser(description=__doc__)
where = options.add_mutually_exclusive_group(required=True)
where.add_argument("--stdio", action="store_true")
where.add_argument("--http", metavar="HOST:PORT")
options.add_argument("--mount", choices=["asgi"])
options.add_argument("--page-size", type=int, default=100)
options.add_argument("--dialects", type=lambda text: text.split(","), default=[])
options.add_argument("--issuer", metavar="URL", help="of the tokens that callers need")
options.add_argument("--proxy", metavar="URL", help="of the provider behind an OAuth proxy, for the client 'proxy'")
options.add_argument("--options", type=json.loads, default={}, metavar="JSON", help="of HTTP, as Python names them")
given = options.parse_args()
if given.mount and given.stdio:
    options.error("--mount serves HTTP: give --http")

app = Server(
    "conformance",
    version="1.0.0",
    page_size=given.page_size,
    dialects=given.dialects,
    schema_profile="full",  # keeps the schema of json_schema_2020_12_tool as it is
    auth=OAuthProxy(given.proxy, client_id="proxy", client_secret="s3cret") if given.proxy else given.issuer,
)
seen = {"started": 0, "cancelled": 0, "changes": 0}


# ── content ──────────────────────────────────────────────────────────────────────────────────────────
@app.tool
def test_simple_text() -> str:
    """Returns a text."""
    return "This is a simple text response for testing."


@app.tool
def test_image_content() -> Image:
    """Returns a picture."""
    return Image(PIXEL, format="png")


@app.tool
def test_audio_content() -> Audio:
    """Returns a sound."""
    return Audio(SILENCE, format="wav")


@app.tool
def test_embedded_resource() -> EmbeddedResource:
    """Returns a resource."""
    return EmbeddedResource(
        "test://embedded-resource", text="This is an embedded resource content.", mime_type="text/plain"
    )


@app.tool
def test_multiple_content_types() -> list[str | Image | EmbeddedResource]:
    """Returns a text, a picture and a resource."""
    mixed = EmbeddedResource(
        "test://mixed-content-resource", text='{"test":"data","value":123}', mime_type="application/json"
    )
    return ["Multiple content types test:", Image(PIXEL, format="png"), mixed]


@app.tool
def test_error_handling() -> str:
    """Fails."""
    raise ToolError("This tool intentionally returns an error for testing")


# ── notifications of running calls ──────────────────────────────────────────────────────────────────
@app.tool
async def test_tool_with_progress(ctx: Context) -> str:
    """Reports progress three times."""
    for done in (0, 50, 100):
        await ctx.progress(done, 100)
        await asyncio.sleep(PAUSE)
    return "Progress was reported"


@app.tool
async def test_tool_with_logging(ctx: Context) -> str:
    """Logs three messages."""
    for message in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await ctx.info(message)
        await asyncio.sleep(PAUSE)
    return "Messages were logged"


@app.tool
def test_logging_tool(ctx: SyncContext) -> str:
    """Logs one message."""
    ctx.info("heard by those who asked for logs only")
    return "A message was logged"


@app.tool
async def test_reconnection(ctx: Context) -> str:
    """Over legacy HTTP: ends its stream, so that the client comes back for the answer."""
    if ctx.session_id is not None:
        await ctx.close_stream(retry=PAUSE)
    await asyncio.sleep(2 * PAUSE)
    return "Reconnection test completed"


@app.tool
async def test_slow(ms: int) -> str:
    """Answers after that time; ends early when it is cancelled."""
    seen["started"] += 1
    try:
        await asyncio.sleep(ms / 1000)
    except asyncio.CancelledError:
        seen["cancelled"] += 1
        raise
    return f"Took {ms} ms"


@app.tool
def test_started() -> str:
    """The number of calls of test_slow that have started."""
    return str(seen["started"])


@app.tool
def test_cancelled() -> str:
    """The number of cancelled calls of test_slow."""
    return str(seen["cancelled"])


# ── changes ──────────────────────────────────────────────────────────────────────────────────────────
def count_change() -> dict[str, int]:
    seen["changes"] += 1
    return {"changes": seen["changes"]}


@app.tool
def test_trigger_tool_change() -> str:
    """Changes the list of tools."""
    app.tools.update("test_trigger_tool_change", meta=count_change())
    return "The list of tools has changed"


@app.tool
def test_trigger_prompt_change() -> str:
    """Changes the list of prompts."""
    app.prompts.update("test_simple_prompt", meta=count_change())
    return "The list of prompts has changed"


@app.tool
def test_touch_resource(uri: str) -> str:
    """Announces that a resource was updated."""
    app.notify_updated(uri)
    return f"{uri} was touched"


# ── schemas ──────────────────────────────────────────────────────────────────────────────────────────
@app.tool(input=SCHEMA)
def json_schema_2020_12_tool(name: str = "", address: dict[str, str] | None = None) -> str:
    """Has a schema with keywords of JSON Schema 2020-12."""
    return f"{name} lives in {(address or {}).get('city', 'an unknown city')}"


@app.tool
def test_x_mcp_header(
    region: Annotated[str, Header("Region")] = "none",
    priority: Annotated[int, Header("Priority")] = 0,
    urgent: Annotated[bool, Header("Urgent")] = False,
) -> str:
    """Has parameters that clients mirror in headers."""
    return f"region {region}, priority {priority}, {'urgent' if urgent else 'not urgent'}"


# ── questions that wait for their answer ─────────────────────────────────────────────────────────────
NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
LETTERS = ["option1", "option2", "option3"]
TITLED = [{"const": f"value{n}", "title": f"{word} Option"} for n, word in enumerate(("First", "Second", "Third"), 1)]


@app.tool
async def test_sampling(prompt: str, ctx: Context) -> str:
    """Asks the client's model."""
    result = await ctx.sample(prompt, max_tokens=100)
    return f"LLM response: {result.text}"


async def elicited(ctx: Context, message: str, properties: dict[str, Any], required: list[str]) -> str:
    schema = {"type": "object", "properties": properties, "required": required}
    outcome = await ctx.try_elicit(message, schema)
    if isinstance(outcome, Accepted):
        return f"action=accept, content={json.dumps(outcome.value)}"
    return f"action={'decline' if type(outcome).__name__ == 'Declined' else 'cancel'}"


@app.tool
async def test_elicitation(message: str, ctx: Context) -> str:
    """Asks the user."""
    properties = {
        "username": {"type": "string", "description": "User's response"},
        "email": {"type": "string", "description": "User's email address"},
    }
    return "User response: " + await elicited(ctx, message, properties, ["username", "email"])


@app.tool
async def test_elicitation_sep1034_defaults(ctx: Context) -> str:
    """Asks the user with a default for each kind of property."""
    properties = {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    }
    return "Elicitation completed: " + await elicited(ctx, "Please review your details", properties, [])


@app.tool
async def test_elicitation_sep1330_enums(ctx: Context) -> str:
    """Asks the user with each kind of choice."""
    old = {
        "type": "string",
        "enum": ["opt1", "opt2", "opt3"],
        "enumNames": ["Option One", "Option Two", "Option Three"],
    }
    properties = {
        "untitledSingle": {"type": "string", "enum": LETTERS},
        "titledSingle": {"type": "string", "oneOf": TITLED},
        "legacyEnum": old,
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": LETTERS}},
        "titledMulti": {"type": "array", "items": {"anyOf": TITLED}},
    }
    return "Elicitation completed: " + await elicited(ctx, "Please choose", properties, [])


# ── questions with keys of their own ─────────────────────────────────────────────────────────────────
@app.tool
async def test_missing_capability(ctx: Context) -> str:
    """Needs a client that has a model."""
    return (await ctx.sample("Say something.", key="needed")).text


@app.tool
async def test_streaming_elicitation(ctx: Context) -> str:
    """Asks for a confirmation."""
    return f"confirmed: {await ctx.elicit('Go on?', bool, key='confirm')}"


@app.tool
async def test_input_required_result_elicitation(ctx: Context) -> str:
    """Asks for the user's name."""
    answer = await ctx.elicit("What is your name?", NAME, key="user_name")
    return f"Hello, {answer['name']}!"


@app.tool
def test_input_required_result_sampling(ctx: SyncContext) -> str:
    """Asks the client's model."""
    return ctx.sample("What is the capital of France?", key="capital_question", max_tokens=100).text


@app.tool
async def test_input_required_result_list_roots(ctx: Context) -> str:
    """Asks for the client's roots."""
    roots = await ctx.roots(key="client_roots")
    return f"{len(roots)} roots: {', '.join(root.uri for root in roots)}"


@app.tool
async def test_input_required_result_request_state(ctx: Context) -> str:
    """Asks, and knows its client again by the state."""
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
    answer = await ctx.elicit("Please confirm", schema, key="confirm")
    return f"state-ok, confirmed: {answer['ok']}"


@app.tool
async def test_input_required_result_multiple_inputs(ctx: Context) -> str:
    """Asks the user, the model and the client at once."""
    name, greeting, roots = await ctx.ask(
        ask.elicit("What is your name?", NAME, key="user_name"),
        ask.sample("Generate a greeting", key="greeting", max_tokens=50),
        ask.roots(key="client_roots"),
    )
    return f"{greeting.text} {name['name']}, {len(roots)} roots"


@app.tool
def test_input_required_result_multi_round(ctx: SyncContext) -> str:
    """Asks twice, one after the other."""
    said = ctx.elicit("Step 1: What is your name?", NAME, key="step1")
    schema = {"type": "object", "properties": {"color": {"type": "string"}}, "required": ["color"]}
    chosen = ctx.elicit("Step 2: What is your favorite color?", schema, key="step2")
    return f"{said['name']} likes {chosen['color']}"


@app.tool
async def test_input_required_result_tampered_state(ctx: Context) -> str:
    """Asks; a state that was changed is refused."""
    await ctx.elicit("Please confirm", bool, key="confirm")
    return "state-ok"


@app.tool
async def test_input_required_result_capabilities(ctx: Context) -> str:
    """Asks only what the client declared that it can answer."""
    known: dict[str, Question[Any]] = {
        "sampling": ask.sample("Say hello.", key="model"),
        "elicitation": ask.elicit("Hello?", bool, key="user"),
    }
    questions = [question for capability, question in known.items() if capability in ctx.client.capabilities]
    answers = await ctx.ask(*questions) if questions else ()
    return f"{len(answers)} answers"


# ── resources ────────────────────────────────────────────────────────────────────────────────────────
@app.resource("test://static-text", mime_type="text/plain", description="A text")
def static_text() -> str:
    return "This is the content of the static text resource."


@app.resource("test://static-binary", mime_type="image/png", description="A picture")
def static_binary() -> bytes:
    return PIXEL


@app.resource("test://watched-resource", mime_type="text/plain", description="One to subscribe to")
def watched_resource() -> str:
    return "Watched resource content"


@app.resource("test://template/{id}/data", mime_type="application/json", description="Data by id")
def template_data(id: str) -> dict[str, Any]:
    return {"id": id, "templateTest": True, "data": f"Data for ID: {id}"}


# ── prompts ──────────────────────────────────────────────────────────────────────────────────────────
@app.prompt
def test_simple_prompt() -> str:
    """A prompt without arguments."""
    return "This is a simple prompt for testing."


@app.prompt
def test_prompt_with_arguments(
    arg1: Annotated[str, "First test argument"], arg2: Annotated[str, "Second test argument"]
) -> str:
    """A prompt with arguments."""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@app.complete("test_prompt_with_arguments", "arg1")
def arguments_that_begin_with(prefix: str) -> list[str]:
    return [value for value in ("test", "testing", "paris", "park", "party") if value.startswith(prefix)]


@app.prompt
def test_prompt_with_embedded_resource(
    resourceUri: Annotated[str, "URI of the resource to embed"],
) -> list[Message]:
    """A prompt with a resource."""
    embedded = EmbeddedResource(resourceUri, text="Embedded resource content for testing.", mime_type="text/plain")
    return [user(embedded), user("Please process the embedded resource above.")]


@app.prompt
def test_prompt_with_image() -> list[Message]:
    """A prompt with a picture."""
    return [user(Image(PIXEL, format="png")), user("Please analyze the image above.")]


@app.prompt
async def test_input_required_result_prompt(ctx: Context) -> str:
    """A prompt that asks for a context."""
    schema = {"type": "object", "properties": {"context": {"type": "string"}}, "required": ["context"]}
    answer = await ctx.elicit("What context should the prompt use?", schema, key="user_context")
    return f"Use this context: {answer['context']}"


# ── routes ───────────────────────────────────────────────────────────────────────────────────────────
def hook(request: HttpRequest) -> HttpResponse:
    asked = f"{request.method} {request.path}?{request.query}"
    headers = {"X-Asked": asked, "X-Signature": request.headers.get("x-signature", "none")}
    return HttpResponse(request.body, 201, headers)


def status() -> str:
    return "fine"


def broken() -> str:
    raise LookupError("a secret")


async def slow() -> None:
    await test_slow(600_000)


# A host has routes of its own.
if given.http and not given.mount:
    app.route("/hooks", methods=["POST"])(hook)
    app.route("/status")(status)
    app.route("/broken")(broken)
    app.route("/slow", methods=["POST"])(slow)

serving.serve(app, given)
