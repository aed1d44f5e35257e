"""The doctor finds each defect of a server, and nothing else, and no deviation in servers of this project."""

import json
import re
import sys
import xml.etree.ElementTree as ElementTree

import pytest
from doctor_checks import (
    ALSO,
    AUTH,
    BATCHES,
    CLIENT,
    DEFECTIVE,
    ELSEWHERE,
    HTTP,
    HTTP_CLIENT,
    MODERN,
    OLD,
    OLDEST,
    ROOT,
    SERVERS,
    SESSIONS,
    SSE,
    STDIO,
    address,
    cases,
    examine,
    found,
)
from test_run import url_of


def test_each_check_has_a_test(gudgeon):
    listed = gudgeon("doctor", "--list").out
    ids = set(re.findall(r"^([a-z.-]+) \(", listed, re.MULTILINE))
    auth = {check for check in ids if check.startswith("auth.")}
    clients = {check for check, _ in CLIENT} | {check for check, _ in cases(HTTP_CLIENT)}
    assert ids == clients | {check for check, _ in cases(STDIO) + cases(HTTP)} | set(SSE) | ELSEWHERE | auth
    assert auth == set(AUTH) | {"auth.challenge"}


@pytest.mark.parametrize(("check", "revision"), cases(STDIO))
def test_a_defect_over_stdio_is_found(gudgeon, check, revision):
    code, report = examine(gudgeon, "--revision", revision, "--", sys.executable, DEFECTIVE, check)
    assert set(found(report)) == {check} | ALSO.get(check, set())
    assert code == (
        1 if any(finding["severity"] == "failure" for them in found(report).values() for finding in them) else 0
    )
    for finding in found(report)[check]:
        assert finding["observed"]
        assert finding["section"].startswith("https://")


@pytest.mark.parametrize(("check", "revision"), cases(HTTP))
def test_a_defect_over_http_is_found(gudgeon, check, revision):
    with address(check) as url:
        _, report = examine(gudgeon, "--revision", revision, url)
    assert set(found(report)) == {check}


@pytest.mark.parametrize("defect", ["messages.unknown-method", "messages.parse-error", "handshake.meta"])
def test_a_defect_is_found_by_its_status(gudgeon, defect):
    with address(defect) as url:
        _, report = examine(gudgeon, "--revision", MODERN, url)
    assert set(found(report)) == {defect}


@pytest.mark.parametrize("check", [*SSE, "http.origin", "http.host", "tools.unknown", "messages.parse-error"])
def test_a_defect_over_http_with_sse_is_found(gudgeon, check):
    # Only without this event nothing is answered at all.
    limit = ["--timeout", "2"] if check == "sse.endpoint" else []
    with address(check) as url:
        _, report = examine(gudgeon, *limit, "--revision", OLDEST, url.replace("/mcp", "/sse"))
    assert set(found(report)) == {check}
    assert found(report)[check][0]["section"].startswith("https://")


def test_an_endpoint_that_can_not_be_reached_is_named(gudgeon, tmp_path):
    program = tmp_path / "special.py"
    program.write_text(ELSEWHERE_SSE.format(servers=str(SERVERS)))
    with address(program=program) as url:
        _, report = examine(gudgeon, "--revision", OLDEST, url.replace("/mcp", "/sse"))
    assert set(found(report)) == {"handshake.answers", "sse.endpoint-origin"}
    assert found(report)["sse.endpoint-origin"][0]["observed"] == "http://127.0.0.1:9/messages"


ELSEWHERE_SSE = """
import sys, time
sys.path.insert(0, {servers!r})
from defective_http import Endpoint, serve_http
def open_stream(self):
    self.begin_events()
    self.wfile.write(b"event: endpoint\\ndata: http://127.0.0.1:9/messages\\n\\n")
    self.wfile.flush()
    self.rfile.read(1)
Endpoint.open_stream = open_stream
serve_http(int(sys.argv[2]), [])
"""


def test_correct_servers_have_no_finding_over_http_with_sse(gudgeon, shelf):
    with address() as url:
        code, report = examine(gudgeon, url.replace("/mcp", "/sse"))
    assert (code, found(report), report["revisions"]) == (0, {}, [OLDEST, BATCHES, OLD, SESSIONS])
    program = gudgeon.folder / "own.py"
    program.write_text("import runpy, sys\napp = runpy.run_path(sys.argv[3])['app']\n" + LISTEN_SSE)
    with address(shelf, program=program) as url:
        code, report = examine(gudgeon, url)
    assert (code, found(report), report["revisions"]) == (0, {}, [OLDEST, BATCHES, OLD, SESSIONS])
    assert any(check["id"] == "sse.endpoint" and check["passed"] for check in report["checks"])


LISTEN_SSE = """
import asyncio
async def main():
    async with app.listen("http://127.0.0.1:0/mcp", legacy_sse=True) as here:
        print(here.url.replace("/mcp", "/sse"), flush=True)
        await asyncio.to_thread(sys.stdin.read)
asyncio.run(main())
"""


def docsearch(language):
    return {
        "python": [sys.executable, ROOT / "examples/docsearch/python/server.py", ROOT / "docs"],
        "node": ["node", ROOT / "examples/docsearch/typescript/dist/server.js", ROOT / "docs"],
        "rust": [ROOT / "target/debug/docsearch", ROOT / "docs"],
    }[language]


@pytest.mark.parametrize("language", ["python", "node", "rust"])
def test_servers_of_this_project_have_no_finding_over_stdio(gudgeon, language):
    code, report = examine(gudgeon, "--", *docsearch(language))
    assert found(report) == {}
    assert code == 0
    assert report["revisions"] == [OLDEST, BATCHES, OLD, SESSIONS, MODERN]
    assert report["summary"]["passed"] > 70


@pytest.mark.parametrize("language", ["python", "node"])
def test_servers_of_this_project_have_no_finding_over_http(gudgeon, language):
    _, file, folder = docsearch(language)
    server = gudgeon.start("run", file, "--http", "http://127.0.0.1:0/mcp", "--", folder)
    try:
        code, report = examine(gudgeon, url_of(server))
    finally:
        server.terminate()
        server.communicate(timeout=60)
    assert (code, found(report)) == (0, {})
    assert report["revisions"] == [OLDEST, BATCHES, OLD, SESSIONS, MODERN]
    assert report["summary"]["passed"] > 80


def test_a_correct_server_without_a_library_has_no_finding(gudgeon):
    code, report = examine(gudgeon, "--call-tools", "--", sys.executable, DEFECTIVE)
    assert (code, set(found(report))) == (0, set())
    assert report["peer"] == {"name": "defective", "version": "1.0"}
    with address() as url:
        code, report = examine(gudgeon, url)
    assert (code, found(report)) == (0, {})


def test_tools_that_may_change_something_are_called_on_request_only(gudgeon):
    command = ["--revision", SESSIONS, "--", sys.executable, DEFECTIVE]
    _, report = examine(gudgeon, *command)
    assert any("1 of 2 tools" in remark for remark in report["remarks"])
    _, report = examine(gudgeon, "--call-tools", *command)
    assert report["remarks"] == []


def test_a_report_for_people_names_section_and_fix(gudgeon):
    outcome = gudgeon("doctor", "--revision", SESSIONS, "--", sys.executable, DEFECTIVE, "ping.empty", LANG="C.UTF-8")
    assert outcome.code == 1
    assert "✗ answers `ping` with an empty result" in outcome.out
    assert '"pong":true' in outcome.out.replace(" ", "")
    assert f"https://modelcontextprotocol.io/specification/{SESSIONS}/basic/utilities/ping" in outcome.out
    assert "fix: " in outcome.out
    assert "1 failure, 0 warnings, 0 notes" in outcome.out
    assert "\x1b" not in outcome.out
    outcome = gudgeon(
        "doctor", "--revision", SESSIONS, "--", sys.executable, DEFECTIVE, "ping.empty", LANG="C", LC_ALL="C"
    )
    assert "FAIL answers `ping` with an empty result" in outcome.out
    assert outcome.out.isascii()


def test_a_junit_report_has_a_case_for_each_check(gudgeon, tmp_path):
    path = tmp_path / "report.xml"
    command = ["--", sys.executable, DEFECTIVE, "ping.empty", "tools.unknown"]
    outcome = gudgeon("doctor", "--junit", path, "--revision", SESSIONS, *command)
    assert outcome.code == 1
    root = ElementTree.parse(path).getroot()
    failed = [case for case in root.iter("testcase") if case.find("failure") is not None]
    assert [case.get("classname") for case in failed] == ["ping"]
    assert root.get("failures") == "1"
    warned = [case for case in root.iter("testcase") if case.find("system-out") is not None]
    assert [case.get("classname") for case in warned] == ["tools"]
    outcome = gudgeon("doctor", "--junit", tmp_path / "nowhere/report.xml", "--revision", SESSIONS, *command)
    assert outcome.code == 10
    assert "nowhere" in outcome.err


# Bad targets.


def test_a_server_that_exits_at_once(gudgeon):
    command = [sys.executable, "-c", "import sys; sys.exit('no configuration')"]
    code, report = examine(gudgeon, "--", *command)
    assert code == 1
    assert set(found(report)) == {"handshake.answers", "handshake.probe"}
    assert "no configuration" in found(report)["handshake.answers"][0]["observed"]


def test_a_server_that_never_answers_ends_the_run(gudgeon):
    command = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    code, report = examine(gudgeon, "--timeout", "1", "--", *command)
    assert code == 1
    assert found(report)["handshake.answers"][0]["observed"] == "no response"


def test_a_server_that_prints_garbage(gudgeon):
    script = "import sys\nfor line in sys.stdin: print('\\x1b[2J oops', flush=True)"
    code, report = examine(gudgeon, "--timeout", "1", "--", sys.executable, "-c", script)
    assert code == 1
    assert "handshake.answers" in found(report)


def test_a_program_that_does_not_exist(gudgeon):
    outcome = gudgeon("doctor", "--", "no-such-program")
    assert outcome.code == 3
    assert "no-such-program" in outcome.err


def test_nobody_listens(gudgeon):
    outcome = gudgeon("doctor", "http://127.0.0.1:9/mcp")
    assert outcome.code == 3
    assert outcome.err.startswith("error: ")


def test_another_scheme_is_refused(gudgeon):
    outcome = gudgeon("doctor", "ws://127.0.0.1:9/mcp")
    assert outcome.code == 2
    assert "http" in outcome.err


def test_a_reader_that_goes_away(gudgeon):
    process = gudgeon.start("doctor", "--list")
    process.stdout.close()
    error = process.stderr.read()
    process.wait(60)
    assert error == ""


def test_a_server_that_exits_at_a_request_before_the_handshake(gudgeon):
    _, report = examine(gudgeon, "--", sys.executable, DEFECTIVE, "handshake.probe")
    assert found(report)["handshake.probe"][0]["severity"] == "warning"
    assert MODERN not in report["revisions"]
    assert SESSIONS in report["revisions"]


def test_batches_of_the_first_revision_are_a_note(gudgeon):
    code, report = examine(gudgeon, "--revision", OLDEST, "--", sys.executable, DEFECTIVE, "batches.accepts")
    assert code == 0
    assert found(report)["batches.json-rpc"][0]["severity"] == "note"


def test_a_wrong_code_of_a_missing_resource_is_a_failure_in_the_newest_revision(gudgeon):
    _, report = examine(gudgeon, "--revision", MODERN, "--", sys.executable, DEFECTIVE, "resources.not-found")
    assert set(found(report)) == {"resources.not-found-code"}


# Checks of the server that speaks 2026-07-28 only: streams that stay open, and calls that take long.

SPECIAL = """
import sys, time
sys.path.insert(0, {servers!r})
from defective_http import Endpoint, serve_http
from defective_protocol import Connection, Refused
defects = sys.argv[3:]
if "modern-only" in defects:
    def initialize(self, params):
        raise Refused(-32022, data={{"supported": ["2026-07-28"], "requested": params["protocolVersion"]}})
    Connection.initialize = initialize
    kept = Endpoint.modern
    def modern(self, message, meta):
        if "headers.version-missing" in defects or self.headers.get("MCP-Protocol-Version"):
            if "headers.version-missing" in defects and not self.headers.get("MCP-Protocol-Version"):
                self.headers["MCP-Protocol-Version"] = "2026-07-28"
            return kept(self, message, meta)
        return self.refuse(400, -32020, message.get("id"))
    Endpoint.modern = modern
    if "http.method-not-allowed" in defects:
        Endpoint.do_GET = lambda self: self.reply(404)
if "http.stream-ends" in defects:
    def respond(self, messages, status, **headers):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        import json
        for each in messages:
            self.wfile.write(f"data: {{json.dumps(each)}}\\n\\n".encode())
        self.wfile.flush()
        # That of a ping, which the check looks at, and no others: each takes this long.
        if {{}} in [each.get("result") for each in messages if isinstance(each, dict)]:
            time.sleep(1.5)
        self.close_connection = True
    Endpoint.respond = respond
serve_http(int(sys.argv[2]), defects)
"""


@pytest.mark.parametrize("defect", ["headers.version-missing", "http.method-not-allowed"])
def test_a_server_of_the_newest_revision_only(gudgeon, tmp_path, defect):
    program = tmp_path / "special.py"
    program.write_text(SPECIAL.format(servers=str(SERVERS)))
    with address("modern-only", program=program) as url:
        code, report = examine(gudgeon, url)
    assert (code, found(report), report["revisions"]) == (0, {}, [MODERN])
    with address("modern-only", defect, program=program) as url:
        _, report = examine(gudgeon, url)
    assert set(found(report)) == {defect}


def test_a_stream_that_stays_open_is_a_warning(gudgeon, tmp_path):
    program = tmp_path / "special.py"
    program.write_text(SPECIAL.format(servers=str(SERVERS)))
    with address("http.stream-ends", program=program) as url:
        _, report = examine(gudgeon, "--revision", BATCHES, url, timeout=180)
    assert found(report)["http.stream-ends"][0]["severity"] == "warning"


SLOW = """
import sys
sys.path.insert(0, {servers!r})
from defective import serve_stdio
from defective_protocol import Connection, Listening
pending = []
def call(self, params, message):
    if params.get("name") == "echo" and "text" in params.get("arguments", {{}}):
        pending.append(message)
        raise Listening
    return kept(self, params, message)
kept, Connection.call = Connection.call, call
def notified(self, message):
    if message["method"] == "notifications/cancelled" and pending and sys.argv[1] == "answers":
        return self.result(pending.pop(), {{}})
    return None
Connection.notified = notified
serve_stdio([])
"""


@pytest.mark.parametrize(("behaviour", "expected"), [("stops", set()), ("answers", {"cancellation.request"})])
def test_a_call_that_takes_long_is_cancelled(gudgeon, tmp_path, behaviour, expected):
    program = tmp_path / "slow.py"
    program.write_text(SLOW.format(servers=str(SERVERS)))
    command = ["--timeout", "6", "--revision", SESSIONS, "--", sys.executable, program, behaviour]
    _, report = examine(gudgeon, *command)
    assert set(found(report)) == expected
    assert any("echo did not answer in time" in remark for remark in report["remarks"])


# Authorization.

PROTECTED = SERVERS / "protected.py"


def test_a_protected_server_without_defects(gudgeon):
    with address(program=PROTECTED) as url:
        code, report = examine(gudgeon, url)
        assert (code, found(report)) == (0, {})
        assert any("requires a token" in remark for remark in report["remarks"])
        code, report = examine(gudgeon, "-H", "Authorization: Bearer secret-token", url)
        assert report["revisions"] == [OLDEST, BATCHES, OLD, SESSIONS, MODERN]
        assert "secret-token" not in json.dumps(report)


@pytest.mark.parametrize("check", AUTH)
def test_a_defect_of_authorization_is_found(gudgeon, check):
    with address(AUTH[check], program=PROTECTED) as url:
        _, report = examine(gudgeon, url)
    assert set(found(report)) == {check}


def test_a_missing_challenge_is_found(gudgeon):
    with address("no-challenge", program=PROTECTED) as url:
        _, report = examine(gudgeon, url)
    assert set(found(report)) == {"auth.challenge", "auth.resource-metadata"}
