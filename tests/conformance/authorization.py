"""Runs the suite's scenarios for authorization servers against `gudgeon.testing.auth`, with a browser of its own."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import threading
import urllib.request
from pathlib import Path

import suite
from verdict import Verdict, evaluate

from gudgeon.testing.auth import AuthorizationServer

sys.path.append(str(Path(__file__).resolve().parents[1] / "interop"))
from ports import reserve_port

RESOURCE = "https://shelf.example.com/mcp"
DOCUMENT = "https://app.example.com/client.json"
REDIRECT = "http://127.0.0.1/callback"
# The client of each run, by its title.
CLIENTS = {"registered client": "app", "client document": DOCUMENT}


def scenarios(listing: str) -> list[str]:
    """Returns the scenarios for authorization servers, from the output of the suite's `list`."""
    found = re.search(r"^Authorization server scenarios.*?:\n((?:  - .+\n?)+)", listing, re.M)
    return re.findall(r"  - (\S+)", found[1]) if found else []


def run(title: str, client: str, expected: list[str]) -> Verdict:
    """Runs the scenarios against a new server."""
    document = {"client_id": DOCUMENT, "redirect_uris": [REDIRECT]}
    provider = AuthorizationServer(clients=[{"client_id": "app"}], client_documents={DOCUMENT: document})
    with tempfile.TemporaryDirectory(prefix="conformance-") as folder, provider:
        try:
            _run(provider.issuer, client, folder)
        except suite.Broken as error:
            verdict = evaluate(title, Path(folder), expected)
            verdict.blame("(the suite)", f"failed: {error}")
            return verdict
        return evaluate(title, Path(folder), expected)


def _run(issuer: str, client: str, folder: str) -> None:
    options = {
        "--url": issuer,
        "--client-id": client,
        "--resource": RESOURCE,
        "--port": str(reserve_port()),
        "-o": folder,
    }
    command = [*map(str, suite.COMMAND), "authorization", *(word for option in options.items() for word in option)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    timer = threading.Timer(suite.SECONDS, child.kill)
    timer.start()
    said: list[str] = []
    try:
        for line in child.stdout or ():
            said.append(line.rstrip())
            url = next((text for text in said if text.startswith(f"{issuer}/authorize?")), None)
            # The suite waits until a browser has come back from the URL, and listens for it a little later.
            if url and "Callback server started" in f"{said}":
                with urllib.request.urlopen(url, timeout=20) as page:
                    page.read()
                said.clear()
        if child.wait() not in (0, 1):
            raise suite.Broken(f"the suite ended with status {child.returncode}: {' | '.join(said[-3:])}")
    except OSError as error:
        raise suite.Broken(f"the browser failed: {error}") from None
    finally:
        timer.cancel()
        child.kill()
        child.wait()
