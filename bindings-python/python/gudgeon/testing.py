"""For tests that users write: a client in memory, pinned to one revision, that answers questions and keeps a record."""

from ._client.options import REVISIONS

ERAS = REVISIONS


class Faults:
    """Makes the wire bad, the same way each time: messages in either direction get lost or come twice.

    The handshake is spared. A request comes the second time when it is answered: then its handler runs once more, or
    the callback that answers the server's question.

    Args:
        seed: The same seed gives the same faults. Default 0.
        drop, duplicate: Probabilities from 0 (default) to 1.
        restart_between_rounds: Whether the server is served anew for every round of answers, as by another process that
            shares its `request_state_keys`: its lifespan is left and entered again, and handlers that waited are
            replayed. Only 2026-07-28 has rounds. Default False.

    Raises:
        ValueError: A probability is none.
    """

    def __init__(self, *, seed=0, drop=0, duplicate=0, restart_between_rounds=False):
        for name, value in (("drop", drop), ("duplicate", duplicate)):
            if not 0 <= value <= 1:
                raise ValueError(f"{name}= is a probability from 0 to 1, not {value!r}")
        self.seed = seed
        self.drop = drop
        self.duplicate = duplicate
        self.restart_between_rounds = bool(restart_between_rounds)


class Recorder:
    """Writes what is said as a transcript: `> ` before what the client says, `< ` before what the server says."""

    def __init__(self, path):
        self.path = path
        self._is_new = True

    def _say(self, mark, message):
        with open(self.path, "w" if self._is_new else "a", encoding="utf-8") as file:
            self._is_new = False
            file.write(f"{mark} {message.decode('utf-8', 'replace')}\n")


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
    **unknown,
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

    Raises:
        ValueError: The revision does not exist, or a header is not valid HTTP.
        TypeError: The server is not a `Server`, or an option is unknown or has the wrong type.

    Spec: Base Protocol › Patterns › Multi round-trip requests.
    """
    from ._testing.link import TestLink
    from .client import Client

    link = TestLink(server, revision, answers, principal, headers, on_log, replay, faults, recorder, unknown)
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
    **unknown,
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
    from ._testing.link import TestLink
    from .client import SyncClient

    link = TestLink(server, revision, answers, principal, headers, on_log, replay, faults, recorder, unknown)
    return link.connecting_sync(SyncClient)
