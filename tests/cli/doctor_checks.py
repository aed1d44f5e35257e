"""The checks of the doctor, by the circumstances in which tests look for their defects, and what runs it."""

import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SERVERS = Path(__file__).parent / "servers"
DEFECTIVE = SERVERS / "defective.py"
OLD, OLDEST, BATCHES, SESSIONS, MODERN = "2025-06-18", "2024-11-05", "2025-03-26", "2025-11-25", "2026-07-28"

# The checks over stdio, by the revision in which their defects are looked for.
STDIO = {
    SESSIONS: """
        capabilities.client capabilities.declared capabilities.logging capabilities.templates
        capabilities.undeclared cancellation.unknown completion.result completion.unknown handshake.result
        handshake.unknown-version hosts.tools logging.bad-level logging.set-level messages.duplicate-keys
        messages.huge-id messages.invalid-params messages.invalid-request messages.notification messages.parse-error
        messages.response-id messages.string-id messages.survives messages.unknown-method messages.unknown-response
        messages.valid pagination.bad-cursor pagination.ends pagination.next-cursor ping.empty progress.increases
        progress.stops progress.token prompts.content prompts.missing-argument prompts.result prompts.shape
        prompts.unknown resources.contents resources.not-found resources.reads resources.shape resources.subscribe
        resources.template-shape stdio.eof stdio.stdout tools.answers tools.content tools.input-schema tools.names
        tools.output-schema tools.result tools.shape tools.structured tools.text-mirror tools.unique tools.unknown
        tools.validates
    """,
    MODERN: """
        cancellation.listen handshake.discover handshake.discover-cache handshake.discover-result handshake.meta
        handshake.server-info handshake.unsupported-version lists.cache lists.cache-scope logging.bad-meta-level
        logging.unasked messages.no-requests messages.reserved-codes messages.result-type resources.cache
        resources.empty subscriptions.acknowledges subscriptions.id tools.order tools.x-mcp-header
    """,
    OLD: "batches.refuses",
    BATCHES: "batches.accepts",
}
HTTP = {
    SESSIONS: """
        http.get http.host http.media-type http.notification http.origin http.origin-status http.session-ended
        http.session-id http.session-id-secure http.session-missing http.session-unknown http.unknown-version
    """,
    MODERN: "headers.encoded headers.method headers.name headers.version http.buffering http.no-session",
}
# The checks over HTTP+SSE.
SSE = ["sse.endpoint", "sse.endpoint-origin", "sse.events"]
# A defect that breaks two rules is found twice.
ALSO = {
    "messages.reserved-codes": {"resources.not-found-code"},
    "resources.empty": {"resources.not-found-code"},
    "messages.survives": {"messages.invalid-request"},
}
# Checks whose defects are looked for by tests of their own.
ELSEWHERE = {
    "batches.json-rpc",
    "cancellation.request",
    "handshake.answers",
    "handshake.probe",
    "headers.version-missing",
    "http.method-not-allowed",
    "http.stream-ends",
    "resources.not-found-code",
}
# The defect of the protected server that each check finds.
AUTH = {
    "auth.resource-metadata": "no-parameter",
    "auth.metadata": "no-metadata",
    "auth.resource": "other-resource",
    "auth.servers": "no-servers",
    "auth.server-metadata": "no-server-metadata",
    "auth.issuer": "other-issuer",
    "auth.pkce": "no-pkce",
    "auth.bad-token": "any-token",
}
# The checks of clients over stdio, with further words for the client.
LEGACY_CLIENT = ["connects", "valid", "first", "initialize", "initialized", "ids", "ping", "unknown-request"]
LEGACY_CLIENT += ["cancels-initialize", "cursor", "pages", "closes"]
CLIENT = [(f"client.{name}", []) for name in LEGACY_CLIENT]
CLIENT += [(f"client.{name}", ["modern"]) for name in ["meta", "no-responses"]]
CLIENT.append(("client.cancels-own", []))
# The checks of clients over HTTP, by the revision in which their defects are looked for.
HTTP_CLIENT = {
    BATCHES: "client-http.session",
    OLD: "client.ids client.ping client.unknown-request client-http.single-message client-http.version",
    SESSIONS: """
        client.cancels-own client.connects client-http.accept client-http.content-type client-http.deletes
        client-http.renews client-http.resumes client-http.retry
    """,
    MODERN: """
        client-http.cancels client-http.method client-http.name client-http.param client-http.version
    """,
}


def cases(table):
    return [(check, revision) for revision, checks in table.items() for check in checks.split()]


def examine(gudgeon, *words, **options):
    outcome = gudgeon("doctor", "--json", *words, **options)
    assert outcome.err == "", outcome.err
    return outcome.code, outcome.json


def found(report):
    return {check["id"]: check["findings"] for check in report["checks"] if check["findings"]}


@contextmanager
def address(*defects, program=DEFECTIVE):
    """Serves over HTTP; yields the URL."""
    command = [sys.executable, program, "http", "0", *defects]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")
    try:
        yield server.stdout.readline().strip()
    finally:
        server.kill()
        server.communicate()
