"""Pages of others, visits without the token, and servers whose every string is HTML and script."""

import asyncio
import functools
import http.client
import http.server
import sys
import threading
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from inspector import SERVER, Inspector

HOSTILE = Path(__file__).parent / "hostile_server.py"


def fetch(url, method="GET", body=None, **headers):
    """Returns the status, the headers and the body of a response."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=60)
    try:
        path = f"{parts.path}?{parts.query}" if parts.query else parts.path
        connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        response = connection.getresponse()
        return response.status, response.headers, response.read()
    finally:
        connection.close()


@pytest.fixture
def process(started):
    return started("--", sys.executable, SERVER)


def test_the_token_is_good_once(process):
    base = process.url.split("?")[0]
    assert fetch(base)[0] == 403
    assert fetch(f"{base}?token={'0' * 64}")[0] == 403
    assert fetch(f"{process.origin}/")[0] == 403
    status, headers, page = fetch(process.url)
    assert status == 200 and b"<title>Gudgeon inspector</title>" in page
    cookie = headers["Set-Cookie"]
    assert f"Path={urlsplit(base).path}" in cookie and "; HttpOnly; SameSite=Lax" in cookie
    status, _, text = fetch(process.url)
    assert status == 403 and b"works once" in text
    kept = cookie.split(";")[0]
    assert fetch(base, Cookie=kept)[0] == 200
    assert fetch(f"{base}api/transcript")[0] == 403
    assert fetch(f"{base}api/transcript", Cookie=kept)[0] == 200


async def test_the_file_that_the_browser_gets_leads_to_a_page_that_can_be_loaded_again(page, started, tmp_path):
    program, given = tmp_path / "browser", tmp_path / "browser.url"
    program.write_text('#!/bin/sh\necho "$1" > "$0.part" && mv "$0.part" "$0.url"\n')
    program.chmod(0o755)
    process = started("--", sys.executable, SERVER, browser=program)

    async def holds(condition):
        try:
            return await page.evaluate(condition)
        except RuntimeError as error:
            # The page is being replaced by the next one.
            assert "navigated" in str(error), error
            return False

    async def until(condition):
        while not await holds(condition):
            await asyncio.sleep(0.01)

    async with asyncio.timeout(60):
        while not given.exists():
            await asyncio.sleep(0.01)
        await page.open(f"file://{given.read_text().strip()}")
        shown = "document.body?.innerText.includes('Skip to the timeline')"
        await until(f"location.origin === '{process.origin}' && {shown}")
        await page.evaluate("window.isFormer = true")
        await page.call("Page.reload")
        await until(f"!window.isFormer && {shown}")


def test_every_response_has_a_strict_policy(process):
    base = process.url.split("?")[0]
    for url in (process.url, base, f"{base}main.js"):
        _, headers, _ = fetch(url)
        policy = headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'") and "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert headers["X-Content-Type-Options"] == "nosniff" and headers["Referrer-Policy"] == "no-referrer"


def test_other_origins_hosts_and_methods_are_refused(process):
    base = process.url.split("?")[0]
    cookie = fetch(process.url)[1]["Set-Cookie"].split(";")[0]
    post = functools.partial(fetch, f"{base}api/disconnect", "POST", "{}", Cookie=cookie)
    assert post(Origin=process.origin)[0] == 200
    assert post()[0] == 403
    assert post(Origin="http://evil.example")[0] == 403
    assert post(Origin="null")[0] == 403
    assert post(Origin="http://127.0.0.1:1")[0] == 403
    assert fetch(base, Cookie=cookie, Host="evil.example")[0] == 421
    assert fetch(base, Cookie=cookie, Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="no-cors")[0] == 403
    assert fetch(base, "DELETE", Cookie=cookie, Origin=process.origin)[0] == 405
    assert fetch(f"{base}api/nothing", "POST", "{}", Cookie=cookie, Origin=process.origin)[0] == 404
    status, _, text = fetch(f"{base}api/call", "POST", "{garbage", Cookie=cookie, Origin=process.origin)
    assert status == 400 and b"line 1 column" in text


def test_a_port_in_use_is_an_error_with_a_hint(process, tmp_path):
    import subprocess

    from inspector import PROGRAM

    port = urlsplit(process.url).port
    done = subprocess.run([PROGRAM, "inspect", "--no-open", "--port", str(port)], capture_output=True, text=True)
    assert done.returncode == 3 and done.stdout == ""
    assert f"127.0.0.1:{port}" in done.stderr and "hint: choose another port" in done.stderr


async def test_a_page_of_another_origin_gets_nothing(page, process):
    inspector = Inspector(page, process.url)
    await inspector.open()
    await inspector.text("#status", "Connected to shelf")
    base = process.url.split("?")[0]

    class Evil(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>evil</title>")

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Evil) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        # The same site as the inspector, so that cookies are sent, and the path is known.
        await page.open(f"http://127.0.0.1:{server.server_port}/")
        outcome = await page.evaluate(
            f"""(async () => {{
                const attempt = (path, options) => fetch("{base}" + path, options).then(it => it.status, it => it.name);
                const script = new Promise(done => {{
                    const element = document.createElement("script");
                    element.src = "{base}main.js";
                    element.onload = () => done("loaded");
                    element.onerror = () => done("refused");
                    document.head.append(element);
                }});
                const frame = document.createElement("iframe");
                frame.src = "{base}";
                const framed = new Promise(done => (frame.onload = () => {{
                    try {{ done(frame.contentDocument ? "readable" : "refused") }} catch {{ done("refused") }}
                }}));
                document.body.append(frame);
                return [
                    await attempt("api/transcript", {{ credentials: "include" }}),
                    await attempt("api/disconnect", {{ method: "POST", body: "{{}}", mode: "no-cors" }}),
                    await script, await framed,
                ];
            }})()"""
        )
        # An answer to a request without CORS is opaque: it has no status that the page could see.
        assert outcome[0] == "TypeError" and outcome[1] in (0, "TypeError") and outcome[2:] == ["refused", "refused"]
        server.shutdown()
    # The request to disconnect had no effect.
    inspector.url = base
    await inspector.open()
    await inspector.text("#status", "Connected to shelf")


async def test_nothing_of_a_hostile_server_runs(inspect):
    inspector = await inspect("--", sys.executable, HOSTILE)
    await inspector.text("#status", "Connected to <img")
    for panel, button in (("Tools", "Call"), ("Resources", "Read"), ("Prompts", "Get")):
        await inspector.tab(panel)
        await inspector.until("user.all('.choose').length")
        for index in range(await inspector.page.evaluate("user.all('.choose').length")):
            await inspector.page.evaluate(f"user.all('.choose')[{index}].click()")
            await inspector.until("user.all('.detail h2').length")
            if panel == "Tools":
                await inspector.do("set", "choice", "b")
            await inspector.page.evaluate(f"user.all('.detail button').find(it => it.innerText === '{button}').click()")
            await inspector.until("user.all('.outcome > *').length > 1")
            # Groups that contain themselves, and those of no tool, are added as well.
            await inspector.page.evaluate(
                "user.all('.detail button').filter(it => it.innerText === 'Add').forEach(it => it.click())"
            )
            await inspector.page.evaluate("user.all('.detail details').forEach(it => (it.open = true))")
    await inspector.until("document.querySelectorAll('.question').length === 2")
    for panel in ("Notifications", "Connection", "Subscriptions", "Tools"):
        await inspector.tab(panel)
    await inspector.until("document.querySelectorAll('.log > *').length >= 3")
    await inspector.page.evaluate("document.querySelectorAll('details').forEach(it => (it.open = true))")
    await asyncio.to_thread(lambda: None)
    await inspector.page.evaluate("document.querySelectorAll('details').forEach(it => (it.open = true))")
    page = inspector.page
    assert await page.evaluate("document.body.innerText.split('onerror').length") > 30
    assert await page.evaluate("window.harmed === undefined")
    found = "[...document.querySelectorAll('script, iframe, svg, [onerror], [onload], img')].map(it => it.outerHTML)"
    elements = [element for element in await page.evaluate(found) if 'src="main.js"' not in element]
    assert all(element.startswith('<img src="blob:http://127.0.0.1:') for element in elements), elements
    hrefs = set(await page.evaluate("[...document.querySelectorAll('a[href]')].map(it => it.protocol)"))
    assert hrefs <= {"http:", "https:", "blob:"}
    assert {origin for origin in page.origins if "evil" in origin} == set()
    assert not page.violations
