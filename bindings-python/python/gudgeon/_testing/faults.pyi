from os import PathLike

from .._native import FaultyLink

class Faults:
    seed: int
    drop: float
    duplicate: float
    restart_between_rounds: bool
    def __init__(
        self, *, seed: int = 0, drop: float = 0, duplicate: float = 0, restart_between_rounds: bool = False
    ) -> None: ...
    def _link(self) -> FaultyLink: ...

class Recorder:
    path: str | PathLike[str]
    def __init__(self, path: str | PathLike[str]) -> None: ...
    def _add(self, mark: str, message: bytes) -> None: ...
