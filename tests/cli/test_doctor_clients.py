"""The doctor finds each defect of a client, and no deviation in clients of this project."""

import sys

import pytest
from doctor_checks import (
    BATCHES,
    CLIENT,
    HTTP_CLIENT,
    MODERN,
    OLD,
    OLDEST,
    SERVERS,
    SESSIONS,
    cases,
    examine,
    found,
)

CLIENT_PROGRAM = SERVERS / "client.py"


def examine_client(gudgeon, *words, **options):
    return examine(gudgeon, "--client", "--timeout", "30", "--", *words, **options)


@pytest.mark.parametrize(("check", "era"), CLIENT)
def test_a_defect_of_a_client_is_found(gudgeon, check, era):
    _, report = examine_client(gudgeon, sys.executable, CLIENT_PROGRAM, "{command}", check, *era)
    assert set(found(report)) == {check}


@pytest.mark.parametrize(("era", "revision"), [([], SESSIONS), (["modern"], MODERN)])
def test_a_correct_client_has_no_finding(gudgeon, era, revision):
    code, report = examine_client(gudgeon, sys.executable, CLIENT_PROGRAM, "{command}", *era)
    assert (code, found(report), report["revisions"]) == (0, {}, [revision])


HTTP_CLIENT_PROGRAM = SERVERS / "http_client.py"


def examine_http_client(gudgeon, *words, **options):
    return examine(gudgeon, "--client", "--http", "--timeout", "30", *words, **options)


@pytest.mark.parametrize(("check", "revision"), cases(HTTP_CLIENT))
def test_a_defect_of_a_client_over_http_is_found(gudgeon, check, revision):
    words = ["--", sys.executable, HTTP_CLIENT_PROGRAM, "{url}", revision, check]
    # A client that wants to come back too early may be held up by a busy machine for as long as it should have waited.
    for _ in range(2 if check == "client-http.retry" else 1):
        _, report = examine_http_client(gudgeon, *words)
        if found(report):
            break
    assert set(found(report)) == {check}
    assert found(report)[check][0]["observed"]


def test_a_response_of_a_client_is_found_in_the_newest_revision(gudgeon):
    words = ["--", sys.executable, HTTP_CLIENT_PROGRAM, "{url}", MODERN, "client.no-responses"]
    _, report = examine_http_client(gudgeon, *words)
    assert set(found(report)) == {"client.no-responses", "client-http.single-message"}


@pytest.mark.parametrize("revision", [BATCHES, OLD, SESSIONS, MODERN])
def test_a_correct_client_over_http_has_no_finding(gudgeon, revision):
    words = [sys.executable, HTTP_CLIENT_PROGRAM, "{url}", revision]
    for only in ([], ["--revision", revision]):
        code, report = examine_http_client(gudgeon, *only, "--", *words)
        assert (code, found(report), report["revisions"]) == (0, {}, [revision])


OWN_HTTP = """
import asyncio, os, sys
from gudgeon import Client
async def main():
    options = {"revision": sys.argv[1]} if len(sys.argv) > 1 else {}
    async with Client(os.environ["MCP_SERVER_URL"], **options) as client:
        assert len(await client.list_tools()) == 3
        assert (await client.call_tool("probe_first", {"region": "ü"})).text == "done"
asyncio.run(main())
"""


@pytest.mark.parametrize("revision", [None, OLDEST, BATCHES, OLD, SESSIONS, MODERN])
def test_the_client_of_this_project_has_no_finding_over_http(gudgeon, tmp_path, revision):
    program = tmp_path / "own.py"
    program.write_text(OWN_HTTP)
    code, report = examine_http_client(gudgeon, "--", sys.executable, program, *filter(None, [revision]))
    assert (code, found(report), report["revisions"]) == (0, {}, [revision or MODERN])
    code, report = examine_http_client(gudgeon, "--", gudgeon.words()[0], "list", "{url}")
    assert (code, found(report), report["revisions"]) == (0, {}, [MODERN])


@pytest.mark.parametrize("revision", [OLDEST, BATCHES, OLD, SESSIONS, MODERN])
def test_the_probe_can_speak_one_revision_only(gudgeon, tmp_path, revision):
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "own_http.py").write_text(OWN_HTTP)
    code, report = examine_http_client(gudgeon, "--revision", revision, "--", sys.executable, "own_http.py")
    assert (code, found(report), report["revisions"]) == (0, {}, [revision])
    words = ["--client", "--revision", revision, "--", sys.executable, "own.py"]
    code, report = examine(gudgeon, *words)
    assert (code, found(report)) == (0, {})
    assert revision in report["revisions"]


def test_a_client_over_http_that_sends_nothing(gudgeon):
    code, report = examine_http_client(gudgeon, "--", sys.executable, "-c", "pass")
    assert (code, set(found(report))) == (1, {"client.connects"})
    assert gudgeon("doctor", "--http", "--", "true").code == 2


OWN = """
import asyncio, os, shlex, sys
from gudgeon import Client
async def main():
    program, *words = shlex.split(os.environ["MCP_SERVER_COMMAND"])
    options = {"revision": sys.argv[1]} if len(sys.argv) > 1 else {}
    async with Client([program, *words], **options) as client:
        assert len(await client.list_tools()) == 3
asyncio.run(main())
"""


@pytest.mark.parametrize("revision", [None, OLDEST, BATCHES, OLD, SESSIONS, MODERN])
def test_the_client_of_this_project_has_no_finding(gudgeon, tmp_path, revision):
    program = tmp_path / "own.py"
    program.write_text(OWN)
    code, report = examine_client(gudgeon, sys.executable, program, *filter(None, [revision]))
    assert (code, found(report)) == (0, {})
    assert report["revisions"] == [revision or MODERN]


def test_a_client_that_does_not_end_is_killed(gudgeon):
    words = ["--client", "--timeout", "1", "--", sys.executable, "-c", "import time; time.sleep(60)"]
    code, report = examine(gudgeon, *words)
    assert code == 1
    assert any("killed after 1 s" in remark for remark in report["remarks"])


def test_a_client_that_does_not_exist(gudgeon):
    outcome = gudgeon("doctor", "--client", "--", "no-such-program")
    assert outcome.code == 3
    assert "no-such-program" in outcome.err
    assert gudgeon("doctor", "--client").code == 2
