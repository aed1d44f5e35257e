"""`Mcp-Method`, `Mcp-Name` and `Mcp-Param-*` are checked against the body, as 2026-07-28 has it."""

import base64

import pytest
import servers
import speak
from speak import ask_modern, call_modern, refused

MISMATCH = -32020
TOOL = "test_simple_text"


def sentinel(text):
    return f"=?base64?{servers.base64_of(text)}?="


def fits(answer):
    assert answer.status == 200, answer
    result = speak.reply(answer)["result"]
    assert not result.get("isError"), result
    return result


def mismatch(answer):
    return refused(answer, 400, MISMATCH)


# ── the standard ones ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("value", ["prompts/list", "TOOLS/LIST", "", None, "tools/list, tools/list"])
def test_mcp_method_must_be_the_bodys(server, value):
    # "Header values (such as method names) are case-sensitive." [Case Sensitivity]
    mismatch(ask_modern(server, "tools/list", headers={"Mcp-Method": value}))


@pytest.mark.parametrize("name", ["mcp-method", "MCP-METHOD", "mCp-MeThOd"])
def test_names_of_headers_are_case_insensitive(server, name):
    fits(ask_modern(server, "tools/list", headers={name: "tools/list"}))


@pytest.mark.parametrize("value", ["wrong_tool_name", TOOL.upper(), TOOL + "x", None, sentinel("other")])
def test_mcp_name_must_be_the_tools(server, value):
    mismatch(call_modern(server, TOOL, headers={"Mcp-Name": value}))


@pytest.mark.parametrize("value", [f"  {TOOL}  ", f"\t{TOOL}", sentinel(TOOL), f" {sentinel(TOOL)} "])
def test_mcp_name_is_trimmed_and_decoded_before_it_is_compared(server, value):
    # "servers MUST decode an encoded Mcp-Name ... before comparing it to the corresponding request body value"
    fits(call_modern(server, TOOL, headers={"Mcp-Name": value}))


@pytest.mark.parametrize(
    "method, params",
    [
        ("resources/read", {"uri": "test://static-text"}),
        ("prompts/get", {"name": "test_simple_prompt"}),
        ("resources/read", {"uri": "test://template/größe/data"}),
    ],
    ids=str,
)
def test_mcp_name_of_resources_and_prompts(server, method, params):
    name = next(iter(params.values()))
    fits(ask_modern(server, method, params, headers={"Mcp-Name": sentinel(name)}))
    for wrong in (None, "wrong", sentinel(name + "x")):
        mismatch(ask_modern(server, method, params, headers={"Mcp-Name": wrong}))


def test_a_header_that_came_twice_does_not_pass(server):
    for name, values in (("Mcp-Name", [TOOL, "other"]), ("Mcp-Method", ["tools/call", "tools/list"])):
        refused(call_modern(server, TOOL, headers={name: values}, id="twice"), 400, MISMATCH, id="twice")


def test_a_mismatch_is_400_for_who_takes_streams_only(server):
    mismatch(call_modern(server, TOOL, headers={"Mcp-Name": "wrong", "Accept": "text/event-stream"}))


# ── Mcp-Param-* ─────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="session")
def mirrored(_running):
    """The tool whose parameters are mirrored, and the parameter and header of each type."""
    tools = speak.reply(ask_modern(_running, "tools/list"))["result"]["tools"]
    for tool in tools:
        properties = tool["inputSchema"].get("properties", {})
        found = {it["type"]: (name, it["x-mcp-header"]) for name, it in properties.items() if "x-mcp-header" in it}
        if {"string", "integer", "boolean"} <= set(found):
            return tool["name"], found
    raise AssertionError("no tool with string, integer and boolean parameters that are mirrored")


@pytest.fixture
def mirror(server, mirrored):
    """Calls that tool with one argument (none when it is `...`) and one header (none when it is None)."""
    tool, found = mirrored

    def mirror(type, value, header):
        name, suffix = found[type]
        return call_modern(server, tool, {} if value is ... else {name: value}, headers={f"Mcp-Param-{suffix}": header})

    return mirror


ACCEPTED = [
    ("string", "Hello", "Hello"),
    ("string", "Hello", "=?base64?SGVsbG8=?="),
    ("string", "us west 1", "us west 1"),
    ("string", "SGVsbG8=", "SGVsbG8="),
    ("string", "=?base64?SGVsbG8=", "=?base64?SGVsbG8="),
    ("string", "SGVsbG8=?=", "SGVsbG8=?="),
    ("string", "=?BASE64?SGVsbG8=?=", "=?BASE64?SGVsbG8=?="),
    ("string", "Hello, 世界", sentinel("Hello, 世界")),
    ("string", " padded ", sentinel(" padded ")),
    ("string", "line1\r\nline2", sentinel("line1\r\nline2")),
    ("string", "=?base64?literal?=", sentinel("=?base64?literal?=")),
    ("string", "", ""),
    ("string", "", "=?base64??="),
    ("integer", 42, "42"),
    ("integer", 42, "42.0"),  # "servers SHOULD compare the header value and the body value numerically"
    ("integer", -7, "-7"),
    ("integer", 0, "0"),
    ("integer", 9007199254740991, "9007199254740991"),
    ("integer", 42, sentinel("42")),
    ("integer", 42.0, "42"),  # to JSON Schema that is an integer
    ("integer", 42.0, "42.0"),
    ("integer", 1e15, "1e15"),
    ("boolean", True, "true"),
    ("boolean", False, "false"),
]


@pytest.mark.parametrize("type, value, header", ACCEPTED, ids=str)
def test_a_parameters_header_that_says_the_same_is_accepted(mirror, type, value, header):
    fits(mirror(type, value, header))


REJECTED = [
    ("string", "Hello", "hello"),
    ("string", "Hello", None),  # "Client omits header but value is in body: Server MUST reject the request"
    ("string", "Hello", ""),
    ("string", "Hello", "=?base64?SGVsbG8?="),
    ("string", "Hello", "=?base64?SGVs!!!bG8=?="),
    ("string", "Hello", "=?base64?SGVsbG9=?="),
    ("string", "Hello", "=?BASE64?SGVsbG8=?="),
    ("string", "Hello", "=?base64?SGVs bG8=?="),
    ("string", "\ufffd", f"=?base64?{base64.b64encode(bytes([255])).decode()}?="),
    ("string", "", None),
    ("integer", 42, "43"),
    ("integer", 42, "42.5"),
    ("integer", 42, "0x2a"),
    ("integer", 42, "forty-two"),
    ("integer", 42, ""),
    ("integer", 42, None),
    ("integer", 9007199254740991, "9007199254740992"),
    ("boolean", True, "True"),
    ("boolean", True, "1"),
    ("boolean", True, "false"),
    ("boolean", False, None),
]


@pytest.mark.parametrize("type, value, header", REJECTED, ids=str)
def test_a_parameters_header_that_says_another_thing_is_rejected(mirror, type, value, header):
    mismatch(mirror(type, value, header))


@pytest.mark.parametrize("type", ["string", "integer", "boolean"])
def test_a_parameter_that_is_not_given_needs_no_header(mirror, type):
    # "Parameter not in arguments: Server MUST NOT expect the header"
    fits(mirror(type, ..., None))


@pytest.mark.parametrize("type", ["string", "integer", "boolean"])
def test_a_parameter_that_is_null_needs_no_header(mirror, type):
    # "Parameter value is null: Server MUST NOT expect the header"; what the schema says of null is another matter
    answer = mirror(type, None, None)
    assert answer.status == 200 and "error" not in speak.reply(answer)


def test_a_header_for_a_parameter_that_is_not_given_is_rejected(mirror):
    # "MUST reject requests where the values specified in the headers do not match" [Server Validation]
    mismatch(mirror("string", ..., "Hello"))
    mismatch(mirror("integer", None, "42"))


def test_a_header_with_invalid_characters_is_rejected(server, mirrored):
    # "Servers MUST reject requests with a recognized Mcp-Param-{Name} header that contains invalid characters"
    tool, found = mirrored
    name, suffix = found["string"]
    mismatch(call_modern(server, tool, {name: "Größe"}, headers={f"Mcp-Param-{suffix}": "Größe"}))


def test_headers_of_no_parameter_are_ignored(server, mirrored):
    fits(call_modern(server, mirrored[0], {}, headers={"Mcp-Param-Nobody": "x"}))
    fits(call_modern(server, TOOL, headers={"Mcp-Param-Region": "x"}))


def test_the_legacy_era_has_no_such_headers(server, mirrored):
    tool, found = mirrored
    with speak.Session(server) as session:
        headers = {"Mcp-Method": "wrong", "Mcp-Name": "wrong", f"Mcp-Param-{found['string'][1]}": "wrong"}
        call = speak.message("tools/call", {"name": tool, "arguments": {found["string"][0]: "right"}})
        assert "right" in speak.text_of(speak.reply(session.post(call, headers=headers)))
