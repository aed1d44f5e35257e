"""The article before the name of a type in error texts."""


def with_article(name: str) -> str:
    """Returns "an int", "a str"."""
    return f"{'an' if name[:1].lower() in ('a', 'e', 'i', 'o') else 'a'} {name}"
