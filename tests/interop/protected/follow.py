"""The user of a test: agrees in the authorization server's page without a browser."""

import urllib.error
import urllib.request


class Stay(urllib.request.HTTPRedirectHandler):
    """Does not follow redirects."""

    def redirect_request(self, *_):
        return None


def follow(url):
    """Returns the URL to which the authorization server redirects; it may redirect to itself before."""
    start = url.split("?")[0].rsplit("/", 1)[0]
    while True:
        try:
            urllib.request.build_opener(Stay).open(url, timeout=10).close()
            raise RuntimeError(f"{url} does not redirect")
        except urllib.error.HTTPError as answer:
            if answer.code not in (302, 303, 307):
                raise
            url = answer.headers["Location"]
        if not url.startswith(start):
            return url
