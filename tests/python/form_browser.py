"""A browser without a screen: it keeps cookies, follows redirects, and presses a button of a page."""

import re
import urllib.error
import urllib.request
from html import unescape
from http.cookiejar import CookieJar
from typing import Any
from urllib.parse import urlencode, urljoin, urlsplit

__all__ = ["Browser"]


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


class Browser:
    """Goes through a sign-in.

    Args:
        decision: The button to press.
    """

    def __init__(self, decision: str = "allow") -> None:
        self._decision = decision
        self._opener = urllib.request.build_opener(_Stay(), urllib.request.HTTPCookieProcessor(CookieJar()))
        self.pages: list[str] = []

    def open(self, url: str, last: str) -> str:
        """Opens a page and what it leads to. Returns the first URL that begins with `last`, which is not opened."""
        body: bytes | None = None
        for _ in range(10):
            if url.startswith(last):
                return url
            url, body = self._step(url, body)
        raise AssertionError("the browser is sent around without end")

    def _step(self, url: str, body: bytes | None) -> tuple[str, bytes | None]:
        origin = "{0.scheme}://{0.netloc}".format(urlsplit(url))
        request = urllib.request.Request(url, body, {"Origin": origin} if body else {})
        try:
            with self._opener.open(request, timeout=60) as answer:
                page = answer.read().decode()
        except urllib.error.HTTPError as error:
            if location := error.headers["Location"]:
                return urljoin(url, location), None
            raise AssertionError(f"{error.code}: {re.sub('<[^>]*>', ' ', error.read().decode())}") from None
        self.pages.append(page)
        action = re.search(r'<form [^>]*action="([^"]*)"', page)
        assert action, page
        hidden = {
            name: unescape(value) for name, value in re.findall(r"type=hidden name=(\w+) value=\"([^\"]*)\"", page)
        }
        return urljoin(url, unescape(action[1])), urlencode({**hidden, "decision": self._decision}).encode()
