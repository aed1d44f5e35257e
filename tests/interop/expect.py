"""Comparison of a result with a suite's expectation. Objects may have further members; other values must be equal.

`{"$any": […]}` matches any of these values, `{"$contains": x}` a string that contains x, or a list with all of x.
"""

import json


def differs(expected, got):
    """Returns None if `got` is as expected, else a description of the difference."""
    if isinstance(expected, dict) and "$any" in expected:
        if any(differs(choice, got) is None for choice in expected["$any"]):
            return None
    elif isinstance(expected, dict) and "$contains" in expected:
        if _contains(expected["$contains"], got):
            return None
    elif isinstance(expected, dict) and isinstance(got, dict):
        whys = ((key, differs(expected[key], got.get(key))) for key in expected)
        return next((f"{key}: {why}" for key, why in whys if why), None) or _hidden_error(expected, got)
    elif isinstance(expected, list) and isinstance(got, list):
        if len(expected) == len(got) and not any(differs(one, other) for one, other in zip(expected, got, strict=True)):
            return None
    elif expected == got and isinstance(expected, bool) == isinstance(got, bool):
        return None
    return f"expected {_short(expected)}, got {_short(got)}"


def _contains(part, got):
    if isinstance(part, str):
        return isinstance(got, str) and part in got
    return isinstance(got, list) and all(one in got for one in part)


def _hidden_error(expected, got):
    """An error matches only if its code is expected."""
    return f"got {_short(got)}" if "error" in got and "code" not in expected else None


def fill(value, names):
    """Replaces `${name}` in all strings of a JSON value."""
    if isinstance(value, str):
        for name, text in names.items():
            value = value.replace("${" + name + "}", text)
        return value
    if isinstance(value, list):
        return [fill(one, names) for one in value]
    if isinstance(value, dict):
        return {key: fill(one, names) for key, one in value.items()}
    return value


def _short(value):
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) < 300 else text[:300] + "…"
