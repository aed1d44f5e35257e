"""The user of a test: agrees in the pages of authorization servers without a browser. A program prints the last URL."""

import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

sys.path.append(str(Path(__file__).parents[2] / "python"))

from form_browser import Browser


def follow(url):
    """Returns the URL with which the browser returns to the client. Servers may redirect to each other before."""
    [back] = parse_qs(urlsplit(url).query)["redirect_uri"]
    return Browser().open(url, back)


if __name__ == "__main__":
    print(follow(sys.argv[1]))
