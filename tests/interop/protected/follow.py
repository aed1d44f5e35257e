"""The user of a test: agrees in the pages of authorization servers without a browser. A program prints the last URL."""

import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

HERE = Path(__file__).resolve().parent
sys.path += [str(HERE.parent), str(HERE.parents[1] / "python")]

from jobs import perform_all as perform_all, print_line as print_line  # noqa: E402

from form_browser import Browser  # noqa: E402


def follow(url):
    """Returns the URL with which the browser returns to the client. Servers may redirect to each other before."""
    [back] = parse_qs(urlsplit(url).query)["redirect_uri"]
    return Browser().open(url, back)


if __name__ == "__main__":
    print(follow(sys.argv[1]))
