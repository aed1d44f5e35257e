"""For tests that users write: a client in memory, pinned to one revision, that answers questions and keeps a record."""

from ._client_options import REVISIONS

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


def connect(server, /, *, era=None, answers=None, replay=False, faults=None, recorder=None):
    """A `Client` of this server, in memory: `async with connect(app, answers={"Sure?": True}) as client: …`

    Args:
        era: The one revision to speak, of `ERAS`. Default: the newest that the server speaks.
        answers: What is answered, by a question's key (its own, or `elicit-1`, `sample-1`, `roots-1` by kind and order)
            or its message (a model's: any message's text; for roots: `roots`): what `on_elicit` may give, a text or
            SampleResult, a list of roots, `Declined`, or a function of the request. With it, even an empty one, the
            client declares that it answers everything. What the handler's type refuses is asked for three times, and is
            then an error that says why. Default: it answers nothing.
        replay: Whether handlers that wait are thrown away at every question, so that each runs again from its top with
            the answers so far. Only 2026-07-28 has rounds to replay between; a tool with `replay="forbid"` can't ask
            then. Default False.
        faults: How bad the wire is. Default: perfect.
        recorder: Writes a transcript.

    Raises:
        ValueError: There is no such era.
        TypeError: This is no `Server`, or an option is of another type.

    Spec: Base Protocol › Patterns › Multi round-trip requests.
    """
    from ._testing import TestLink
    from .client import Client

    return TestLink(server, era, answers, replay, faults, recorder).connecting(Client)


def connect_sync(server, /, *, era=None, answers=None, replay=False, faults=None, recorder=None):
    """A `SyncClient` of this server, in memory; parameters and errors are those of `connect`.

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
    from ._testing import TestLink
    from .client import SyncClient

    return TestLink(server, era, answers, replay, faults, recorder).connecting_sync(SyncClient)
