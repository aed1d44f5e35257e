"""For tests that users write: a client in memory, pinned to one revision, that answers questions and keeps a record."""

from ._client_options import REVISIONS

ERAS = REVISIONS


class Faults:
    """Makes the wire bad, the same way each time: messages of the server's, but the first, get lost or come twice.

    Args:
        seed: The same seed gives the same faults. Default 0.
        drop, duplicate: Probabilities from 0 (default) to 1.
        restart_between_rounds: Needs rounds of questions, which these connections don't carry.

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


def connect(server, /, *, era=ERAS[-1], answers=None, replay=False, faults=None, recorder=None):
    """A `Client` of this server, in memory: `async with connect(app, answers={"Sure?": True}) as client: …`

    Args:
        era: The revision to speak, one of `ERAS`. Default: the newest.
        answers: What the user or model answers, by message: a value, `Declined`, or a function of the request.
        replay: Whether handlers are replayed between rounds; needs rounds of questions, as `Faults` says.
        faults: How bad the wire is. Default: perfect.
        recorder: Writes a transcript.

    Raises:
        ValueError: There is no such era.
        NotSupported: `replay`, or `restart_between_rounds`.
    """
    from ._testing import TestLink
    from .client import Client

    return TestLink(server, era, answers, replay, faults, recorder).connecting(Client)


def connect_sync(server, /, *, era=ERAS[-1], answers=None, replay=False, faults=None, recorder=None):
    """A `SyncClient` of this server, in memory; parameters and errors are those of `connect`.

    >>> from gudgeon import Server
    >>> app = Server("calculator")
    >>> @app.tool
    ... def add(a: int, b: int) -> int:
    ...     return a + b
    >>> for era in ERAS:
    ...     with connect_sync(app, era=era) as client:
    ...         assert client.call_tool("add", {"a": 1, "b": 2}, returns=int).data == 3
    """
    from ._testing import TestLink
    from .client import SyncClient

    return TestLink(server, era, answers, replay, faults, recorder).connecting_sync(SyncClient)
