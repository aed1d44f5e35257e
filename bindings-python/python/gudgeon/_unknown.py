"""Errors for names that do not exist, with the name that was probably meant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def unknown_name(
    where: str, kind: str, name: str, known: Iterable[str], meant: Mapping[str, str] | None = None
) -> TypeError:
    """Returns the error for an unknown name: `tool 'add': unknown option 'timout'; did you mean 'timeout'?`

    Args:
        where: The place, such as "tool 'add'".
        kind: The sort of name, such as "option".
        name: The unknown name.
        known: All names that exist.
        meant: Names that people bring from other SDKs, with the name here.
    """
    known = sorted(known)
    near = closest(name, known, meant)
    fix = f"did you mean {near!r}?" if near is not None else f"it takes {', '.join(known)}"
    return TypeError(f"{where}: unknown {kind} {name!r}; {fix}")


def closest(name: str, known: Iterable[str], meant: Mapping[str, str] | None = None) -> str | None:
    """Returns the known name that was probably meant, or None."""
    names = list(known)
    alias = (meant or {}).get(name)
    if alias is not None and alias in names:
        return alias
    from difflib import get_close_matches

    plain = {_plain(it): it for it in names}
    if _plain(name) in plain:
        return plain[_plain(name)]
    near = get_close_matches(_plain(name), plain, n=1, cutoff=0.7)
    return plain[near[0]] if near else None


def _plain(name: str) -> str:
    """The name without case and separators: `readOnly` and `read_only` are one name."""
    return name.replace("_", "").replace("-", "").lower()
