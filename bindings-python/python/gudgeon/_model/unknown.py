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
    known = sorted(known)
    hint = (hints or {}).get(name)
    if hint is not None and hint not in known:
        return TypeError(f"{where}: unknown {kind} {name!r}; {hint}")
    near = hint or closest(name, known)
    fix = f"did you mean {near!r}?" if near is not None else f"it takes {', '.join(known)}"
    return TypeError(f"{where}: unknown {kind} {name!r}; {fix}")


def closest(name: str, known: Iterable[str]) -> str | None:
    """Returns the known name that was probably meant, or None. Case and separators don't count."""
    from difflib import get_close_matches

    plain = {_plain(it): it for it in known}
    near = get_close_matches(_plain(name), plain, n=1, cutoff=0.7)
    return plain[near[0]] if near else None


def _plain(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()
