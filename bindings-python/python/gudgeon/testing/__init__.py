"""For tests that users write: a client in memory, pinned to one revision, that answers questions and keeps a record."""

from .._testing.faults import Faults, Recorder

__all__ = ["ERAS", "Faults", "Recorder", "check_store", "connect", "connect_sync"]

ERAS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")


def connect(
    server,
    *,
    revision=None,
    answers=None,
    principal=None,
    headers=None,
    on_log=None,
    replay=False,
    faults=None,
    recorder=None,
    **client_options,
):
    """Connects a `Client` to this server in memory: `async with connect(app, answers={"Sure?": True}) as client: …`

    Args:
        server: The `Server` under test.
        revision: The one revision to speak, of `ERAS`. Default: the newest that the server speaks.
        answers: Answers by a question's key (its own, or `elicit-1`, `sample-1`, `roots-1` by kind and order) or its
            message (for sampling the text of any message; for roots `roots`): what `on_elicit` may return, a string or
            SampleResult, a list of roots, `Declined`, or a function of the request. With it, even an empty one, the
            client declares that it answers everything. An answer that the handler's type refuses is asked for three
            times, then the handler gets an error with the reason. Default: the client answers nothing.
        principal: The `Principal` of every call: `ctx.principal`, and the argument of `visible=`. Default: None.
        headers: HTTP headers of every call, by name: `ctx.headers`. Default: none.
        on_log: A function that gets each `LogMessage` of the server, "info" and above unless `set_log_level` says
            otherwise. Default: log messages are dropped.
        replay: Throws waiting handlers away at every question, so that each runs again from its top with the answers
            so far. Has no effect before 2026-07-28; a tool with `replay="forbid"` can't ask then. Default False.
        faults: The `Faults` of the wire. Default: none.
        recorder: A `Recorder` that writes a transcript. Default: none.
        client_options: Other options of `Client`, such as `middleware=` and `timeout=`.

    Raises:
        ValueError: The revision does not exist, or a header is not valid HTTP.
        TypeError: The server is not a `Server`, or an option is unknown or has the wrong type.

    Spec: Base Protocol › Patterns › Multi round-trip requests.
    """
    from .._testing.link import TestLink
    from ..client import Client

    link = TestLink(server, revision, answers, principal, headers, on_log, replay, faults, recorder, client_options)
    return link.connecting(Client)


def connect_sync(
    server,
    *,
    revision=None,
    answers=None,
    principal=None,
    headers=None,
    on_log=None,
    replay=False,
    faults=None,
    recorder=None,
    **client_options,
):
    """Connects a `SyncClient` to this server in memory; parameters and errors are those of `connect`.

    >>> from gudgeon import Server, SyncContext
    >>> app = Server("shelf")
    >>> runs = []
    >>> @app.tool
    ... def remove(path: str, ctx: SyncContext) -> str:
    ...     runs.append(path)
    ...     return "gone" if ctx.elicit(f"Delete {path}?", bool) else "kept"
    >>> with connect_sync(app, answers={"Delete a?": False}, replay=True) as client:
    ...     client.call_tool("remove", {"path": "a"}).text
    'kept'
    >>> runs
    ['a', 'a']
    """
    from .._testing.link import TestLink
    from ..client import SyncClient

    link = TestLink(server, revision, answers, principal, headers, on_log, replay, faults, recorder, client_options)
    return link.connecting_sync(SyncClient)


async def check_store(store):
    """Checks that a store, for `Server(store=…)`, does what servers rely on: its replies, versions, the ends of values,
    and one winner among concurrent calls. It takes some seconds, may run beside the store's other users, and leaves no
    values behind.

    Args:
        store: An object with the methods of `gudgeon.types.Store`.

    Raises:
        AssertionError: The store does not keep a rule, which the text names.
    """
    from .._testing.store import check

    await check(store)
