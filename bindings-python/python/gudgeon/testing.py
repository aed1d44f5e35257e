"""For tests that users write: a client in memory, pinned to one revision, that answers questions and keeps a record."""

from ._client_options import REVISIONS

ERAS = REVISIONS


class Faults:
    """Makes the wire bad, the same way each time: messages of the server's, but the first, get lost or come twice."""

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
    """A `Client` of this server, in memory: `async with connect(app, answers={"Sure?": True}) as client: …`"""
    from ._testing import TestLink
    from .client import Client

    return TestLink(server, era, answers, replay, faults, recorder).connecting(Client)


def connect_sync(server, /, *, era=ERAS[-1], answers=None, replay=False, faults=None, recorder=None):
    """A `SyncClient` of this server, in memory: `with connect_sync(app) as client: …`"""
    from ._testing import TestLink
    from .client import SyncClient

    return TestLink(server, era, answers, replay, faults, recorder).connecting_sync(SyncClient)
