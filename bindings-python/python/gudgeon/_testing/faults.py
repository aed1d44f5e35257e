"""Faults of the connection between a test's client and its server, and the record of its messages."""


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
        ValueError: `drop` or `duplicate` is not between 0 and 1.
    """

    def __init__(self, *, seed=0, drop=0, duplicate=0, restart_between_rounds=False):
        self.seed = seed
        self.drop = drop
        self.duplicate = duplicate
        self.restart_between_rounds = bool(restart_between_rounds)
        self._link()

    def _link(self):
        """Returns the link that drops or repeats messages of one connection."""
        from .._native import FaultyLink

        return FaultyLink(self.seed, self.drop, self.duplicate, self.restart_between_rounds)


class Recorder:
    """Writes the messages as a transcript: `> ` before those of the client, `< ` before those of the server."""

    def __init__(self, path):
        self.path = path
        self._is_new = True

    def _add(self, mark, message):
        with open(self.path, "w" if self._is_new else "a", encoding="utf-8") as file:
            self._is_new = False
            file.write(f"{mark} {message.decode('utf-8', 'replace')}\n")
