"""The rows that Python and Node keep, grouped by the code of a binding that they pass.

All rows run on Rust, whose client has the runtime of the bindings' clients. Frames, limits, schemas, negotiation and
connections are the same core there. A binding converts messages to values, errors to exceptions, and decides what its
threads and its event loop do next; the rows here are those that reach this code. That is above the transports, so each
row comes over one. The names in brackets are files of `bindings-python` and `bindings-node`.
"""

HTTP, STDIO, TCP = "http", "stdio", "tcp"

# Rows of evil servers: by transport, then by reason.
CLIENT = {
    HTTP: [
        # Results become values, or are refused by the checks of a binding [_client/read.py, _model; client/queue.rs,
        # client/received.ts, client/checks.ts, model]: numbers, texts, names and depths that a language has trouble
        # with, and the largest results that the core lets through, which are converted in parts.
        "content that is a number",
        "content without a type",
        "content of an unknown type",
        "content of 5,000 parts",
        "content of 10,000 parts",
        "a text that is a number",
        "a text with a lone surrogate",
        "terminal escapes in a result",
        "an image that is not base64",
        "a result 100,000 levels deep",
        "a number of 100,000 digits",
        "numbers beyond a double",
        "structured content of 100,000 numbers",
        "members named as those of all objects",
        "tools that are not a list",
        "tools of the wrong shape",
        "a tool whose description is a number",
        "names of control characters, and one of 1 MiB",
        "a page of 25,000 tools",
        # Errors become exceptions of a class for each kind, with data [client_error.rs, _client/errors.py;
        # client/thrown.rs, client/errors.ts].
        "an error with a code beyond 64 bits",
        "an error message of 15 MiB",
        "an error with 1 MiB of data",
        "error data with a number beyond a double",
        "error data of 1,000 levels",
        "a failed result with a number beyond a double",
        "a failed result with a text that is an object",
        "arguments of 200 KB against a pattern that looks ahead",
        "HTTP 401 that names another origin",
        "an unknown revision",
        "silence",
        "silence from the start",
        "it closes at every call",
        # The server's description of itself [client.rs, _client/core.py; client/queue.rs, client/wire.ts].
        "instructions of 1 MiB",
        "a capability with a lone surrogate",
        # Questions are queued, read, and answered by callbacks [client_connected.rs, _client/questions.py;
        # client/mod.rs, client/questions.ts].
        "a form with 10,000 fields",
        "a round of 20,000 questions",
        "rounds of questions without end",
        "questions without end",
        "questions before the end of the handshake",
        # Notifications wait in a mailbox between the runtime's thread and the event loop, which has other work too
        # [client_mailbox.rs, _client/loop.py; client/queue.rs, client/wire.ts].
        "notifications of the wrong shape",
        "progress that is not a number",
        "progress that decreases and is about others",
        "log messages without end",
        "progress without end",
        "changes without end",
        "20,000 changes of a subscription",
    ],
    STDIO: [
        # The status and the signal of a server's process are parts of errors [client_error.rs, _client/errors.py;
        # client/errors.ts].
        "a child that ends at once",
        "a child that is killed during a call",
        # Arguments of 1 MiB are encoded, and calls are given up while they are written [client_calls.rs,
        # _client/core.py; client/mod.rs, client/wire.ts].
        "it stops reading",
    ],
}
# Rows of evil clients.
SERVER = {
    STDIO: [
        # A binding reads standard input, and writes to standard output, with threads of its own [pool.rs, stream.rs,
        # asyncio_queue.rs; reader.rs, stream.rs, work_queue.rs].
        "texts that are not messages",
        "texts against a pattern that looks ahead",
        "a client that stops reading while it calls",
        "errors that nobody reads",
        # Handlers wait until their client has read, also those that a batch has handed to an event loop
        # [pool.rs, asyncio_queue.rs; call/scheduler.ts].
        "short calls for long answers",
    ],
    TCP: [
        # Results that nobody takes come from handlers that run on [listening.rs, _serving/listen.py; listening.rs,
        # call/scheduler.ts].
        "a client that stops reading while it calls",
        "short calls for long answers",
    ],
    HTTP: [
        "short calls for long answers of many connections",
        # A thousand handlers wait, and are cancelled [listening.rs, handler.rs; shared.rs, batch.rs,
        # call/scheduler.ts].
        "a call of an hour, 1,000 times",
        # Arguments of 3 MiB are decoded while another client waits for the event loop [convert.rs, _plan/invoke.py;
        # batch.rs, large_texts.rs, plan/plan.ts].
        "four connections that send calls of 3 MiB",
    ],
}


def chosen(language, transport, rows, kept):
    """Returns the rows of a language over a transport: of a binding those of CLIENT or SERVER, `kept`, of Rust all."""
    of_transport = [row for row in rows.values() if transport in row.transports]
    if language == "rust":
        return of_transport
    wanted = kept.get(transport, [])
    if unknown := set(wanted) - {row.name for row in of_transport}:
        raise ValueError(f"there are no rows over {transport} with these names: {sorted(unknown)}")
    return [row for row in of_transport if row.name in wanted]
