"""A sign-in that is started in the inspector: its steps, and the link that the user opens."""

import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from ports import reserve_port

from gudgeon.testing.auth import AuthorizationServer

PROTECTED = Path(__file__).resolve().parents[1] / "e2e_sign_in/protected_server.py"
START_TIME = 60.0


@pytest.fixture
def protected():
    """The URL of a server that lets in the users of an authorization server, which agrees to everything."""
    port = reserve_port()
    with AuthorizationServer(subject="ada") as provider:
        url = f"http://127.0.0.1:{port}/mcp"
        process = subprocess.Popen([sys.executable, PROTECTED, "direct", provider.issuer, url])
        end = time.monotonic() + START_TIME
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                assert time.monotonic() < end and process.poll() is None, "the server does not listen"
                time.sleep(0.02)
        yield url
        process.kill()
        process.wait()


async def test_the_steps_of_a_sign_in_are_shown(inspect, protected):
    inspector = await inspect(protected)
    await inspector.text("[aria-label=Server]", "401")
    await inspector.do("set", "Credentials", "Sign in (OAuth)")
    await inspector.click("Connect")
    await inspector.text("#questions", "The server asks you to sign in")
    link = await inspector.page.evaluate("document.querySelector('#questions a').href")
    with urllib.request.urlopen(link) as page:
        assert b"You are signed in" in page.read()
    await inspector.text("#status", "Connected to shelf")
    await inspector.until("!document.querySelector('#questions').childElementCount")
    await inspector.tab("Connection")
    steps = await inspector.text(".steps", "grant authorization_code: 200")
    assert "/.well-known/oauth-protected-resource" in steps and "/.well-known/oauth-authorization-server" in steps
    assert "code_challenge" not in steps and "code=" not in steps
    await inspector.call("who")
    await inspector.text(".result", "ada")


async def test_a_token_is_sent_and_not_shown(inspect, protected):
    inspector = await inspect(protected)
    await inspector.text("[aria-label=Server]", "401")
    await inspector.do("set", "Credentials", "Token")
    await inspector.do("set", "Access token", "t0p-s3cret")
    await inspector.click("Connect")
    shown = await inspector.text("[aria-label=Server]", "auth")
    assert "t0p-s3cret" not in shown
    assert "t0p-s3cret" not in await inspector.page.evaluate("document.documentElement.outerHTML")
