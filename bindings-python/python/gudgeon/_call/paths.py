"""Paths that clients give to handlers."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from .. import _native
from ..errors import ToolError

__all__ = ["resolve_inside"]


def resolve_inside(root: str | PathLike[str], path: str) -> Path:
    """Returns the real path of a file in a folder, for a path relative to it that a client gave.

    Call it before a handler opens, writes or lists what an argument names. `path` uses `/` on every system. It need not
    exist, so a handler can create the file. The check is made once: in a folder where others replace directories by
    symbolic links at the same time, it does not protect.

    Args:
        root: The folder.
        path: A path relative to it.

    Raises:
        ToolError: The path is absolute, names a drive, contains `..`, a backslash or NUL, or leads out of the folder
            through a symbolic link.
        OSError: `root` is not a folder that can be read.

    >>> resolve_inside(".", "notes/today.md").relative_to(Path.cwd()).as_posix()
    'notes/today.md'
    >>> resolve_inside(".", "../secret")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    gudgeon.errors.ToolError: path "../secret" leads out of the folder; give a relative path ...
    """
    resolved, problem = _native.resolve_inside(root, path)
    if problem is not None or resolved is None:
        raise ToolError(problem or "")
    return resolved
