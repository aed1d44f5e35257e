"""Errors for names that do not exist, with the name that was probably meant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def unknown_name(
    where: str, kind: str, name: str, known: Iterable[str], hints: Mapping[str, str] | None = None
) -> TypeError:
    """Returns the error for an unknown name: `tool 'add': unknown option 'timout'; did you mean 'timeout'?`

    Args:
        where: The place, such as "tool 'add'".
        kind: The sort of name, such as "option".
        name: The unknown name.
        known: All names that exist.
        hints: For names that people bring from other SDKs: the name here, or a sentence that says what to do.
    """
    from .._native import name_problem

    return TypeError(f"{where}: {name_problem(kind, name, sorted(known), (hints or {}).get(name))}")
