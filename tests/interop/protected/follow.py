"""The user of a test: agrees in the pages of authorization servers without a browser. A program prints the last URL."""

import re
import sys
import urllib.error
import urllib.request
from html import unescape
from http.cookiejar import CookieJar
from urllib.parse import parse_qs, urlencode, urljoin, urlsplit


class Stay(urllib.request.HTTPRedirectHandler):
    """Does not follow redirects."""

    def redirect_request(self, *_):
        return None


def follow(url):
    """Returns the URL with which the browser returns to the client. Servers may redirect to each other before."""
    [back] = parse_qs(urlsplit(url).query)["redirect_uri"]
    opener = urllib.request.build_opener(Stay, urllib.request.HTTPCookieProcessor(CookieJar()))
    form = None
    while not url.startswith(back):
        try:
            with opener.open(url, form, timeout=10) as answer:
                url, form = _agree(url, answer.read().decode())
        except urllib.error.HTTPError as answer:
            if answer.code not in (302, 303, 307):
                raise
            url, form = urljoin(url, answer.headers["Location"]), None
    return url


def _agree(url, page):
    action = re.search(r'<form [^>]*action="([^"]*)"', page)
    if action is None:
        raise RuntimeError(f"{url} neither redirects nor asks")
    hidden = {name: unescape(value) for name, value in re.findall(r'type=hidden name=(\w+) value="([^"]*)"', page)}
    return urljoin(url, unescape(action[1])), urlencode({**hidden, "decision": "allow"}).encode()


if __name__ == "__main__":
    print(follow(sys.argv[1]))
