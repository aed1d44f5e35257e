"""The server that the tests of middleware wrap."""

from typing import Any

from gudgeon import Server


def shelf(**options: Any) -> Server[Any]:
    app = Server("shelf", **options)

    @app.tool
    def open(title: str) -> str:
        """Opens a book."""
        return f"open {title}"

    return app
