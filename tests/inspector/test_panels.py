"""Each panel of the inspector, used by script in a headless Chromium."""

import base64
import json
import sys
import urllib.request

import pytest
from inspector import SERVER, Inspector

# Counts the object URLs that were made, and collects those that are not revoked.
OBJECT_URLS = """
window.made = 0;
window.kept = new Set();
const [create, revoke] = [URL.createObjectURL, URL.revokeObjectURL];
URL.createObjectURL = it => { const url = create(it); made += 1; kept.add(url); return url; };
URL.revokeObjectURL = it => { kept.delete(it); revoke(it); };
true
"""


async def test_the_connection_shows_the_server(inspector):
    await inspector.tab("Connection")
    shown = await inspector.text("[aria-label=Server]", "2026-07-28")
    assert "shelf" in shown and "Ask for books" in shown and "completions" in shown
    await inspector.click("Ping")
    await inspector.until("user.all('[aria-label=Server] .hint').some(it => it.innerText.endsWith(' ms'))")


async def test_another_revision_and_command_are_chosen(inspect):
    inspector = await inspect()
    await inspector.text("#status", "Connected to shelf")
    inspector.process.err = "can't open file '/nowhere.py'"
    await inspector.tab("Connection")
    await inspector.fill(Revision="2025-06-18")
    await inspector.click("Connect")
    await inspector.text("#status", "(2025-06-18)")
    await inspector.do("set", "Program and arguments", f"{sys.executable}\n/nowhere.py")
    await inspector.click("Connect")
    shown = await inspector.text("[aria-label=Server]", "nowhere.py")
    assert "Standard error" in await inspector.page.evaluate("document.querySelector('main').innerHTML")
    assert "connect" in shown
    await inspector.click("Disconnect")
    await inspector.text("#status", "Not connected")


async def test_a_server_at_a_url_gets_headers(page, inspect):
    import http.server
    import threading

    seen = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            seen.append((self.path, self.headers["X-Key"]))
            self.send_response(404)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_POST

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/mcp"
        inspector = await inspect(url, "-H", "X-Key: s3cret")
        await inspector.text("#status", "failed")
        # The value is the program's: the page does not know it, and it is kept.
        assert "s3cret" not in await page.evaluate("document.documentElement.outerHTML")
        count = len(seen)
        await inspector.click("Connect")
        await inspector.until("document.querySelector('#status').textContent === 'Connection failed'")
        await inspector.text("[aria-label=Server]", "404")
        assert len(seen) >= count and set(seen) == {("/mcp", "s3cret")}
        # It is not sent to another server.
        await inspector.fill(URL=url + "2")
        await inspector.click("Connect")
        await inspector.text("[aria-label=Server]", "X-Key has no value")
        assert set(seen) == {("/mcp", "s3cret")}
        server.shutdown()


async def test_a_tool_is_called_by_its_form(inspector):
    await inspector.call("add", a="2", b="40")
    assert "42" in await inspector.text(".result", "42")


async def test_names_stand_beside_titles(inspector):
    await inspector.text("#status", "shelf (The shelf)")
    for tab, name, title in [
        ("Tools", "review", "Write a review"),
        ("Resources", "about", "About the shelf"),
        ("Prompts", "recommend", "Ask for advice"),
    ]:
        await inspector.tab(tab)
        await inspector.text(".choose .name", f"{name} ({title})")
        await inspector.do("choose", name)
        await inspector.text(".detail h2", f"{name} ({title})")


async def test_a_result_is_shown_once(inspector):
    times = "document.querySelector('.result:not([hidden])').innerText.split('WORD').length - 1"
    await inspector.call("store", title="Emma", pages="300")
    await inspector.text("[aria-label='Structured content']", "Paper")
    assert await inspector.page.evaluate(times.replace("WORD", "Paper")) == 1
    # A string is easier to read as text.
    await inspector.call("review")
    await inspector.until("document.querySelector('.result table td')")
    assert await inspector.page.evaluate(times.replace("WORD", "points")) == 1


async def test_a_form_has_nested_values_variants_and_defaults(inspector):
    await inspector.tab("Tools")
    await inspector.do("choose", "store")
    assert await inspector.do("value", "copies") == "1"
    await inspector.fill(title="Emma")
    await inspector.click("Add an item")
    await inspector.fill(name="Jane Austen", born="1775")
    await inspector.do("set", "Form of medium", "type: recording")
    await inspector.fill(minutes="12.5", shelf="north")
    await inspector.click("Add tags")
    await inspector.click("Add an item")
    await inspector.do("set", "tags 1", "novel")
    await inspector.click("Edit as JSON")
    written = json.loads(await inspector.do("value", "Value as JSON"))
    assert written == {
        "book": {
            "title": "Emma",
            "authors": [{"name": "Jane Austen", "born": 1775}],
            "medium": {"type": "recording", "minutes": 12.5},
            "shelf": "north",
        },
        "copies": 1,
        "tags": ["novel"],
    }
    await inspector.do("set", "Value as JSON", json.dumps({**written, "copies": 3}))
    await inspector.click("Edit as JSON")
    assert await inspector.do("value", "copies") == "3"
    assert await inspector.do("value", "minutes") == "12.5"
    await inspector.click("Call")
    shown = await inspector.text("[aria-label='Structured content']", "Recording")
    assert '"novel"' in shown and "copies: 3" in shown


async def test_a_wrong_value_is_named_and_not_sent(inspector):
    await inspector.call("add", a="two", b="1")
    assert "a: two is not a number" in await inspector.text(".form .problem", "two")
    assert await inspector.page.evaluate("document.activeElement.value") == "two"
    await inspector.fill(a="")
    await inspector.click("Call")
    await inspector.text(".form .problem", "a is required")
    assert await inspector.page.evaluate("!document.querySelector('#timeline').innerText.includes('tools/call')")


async def test_a_large_integer_keeps_its_digits(inspector):
    await inspector.call("add", a="9007199254740993", b="0")
    await inspector.text(".result", "9007199254740993")


async def test_a_file_is_sent_as_base64(inspector, tmp_path):
    (tmp_path / "data.bin").write_bytes(bytes(range(256)) * 4)
    await inspector.tab("Tools")
    await inspector.do("choose", "measure")
    await inspector.until("document.querySelector('input[type=file]')")
    document = await inspector.page.call("DOM.getDocument")
    found = await inspector.page.call(
        "DOM.querySelector", nodeId=document["root"]["nodeId"], selector="input[type=file]"
    )
    files = [str(tmp_path / "data.bin")]
    await inspector.page.call("DOM.setFileInputFiles", nodeId=found["nodeId"], files=files)
    await inspector.until("user.value('data')")
    assert base64.b64decode(await inspector.do("value", "data")) == bytes(range(256)) * 4
    await inspector.click("Call")
    await inspector.text(".result", "1024")


async def test_results_are_rendered(inspector):
    await inspector.call("review")
    await inspector.until("document.querySelector('.result table td')")
    assert await inspector.page.evaluate("document.querySelector('.result .markdown strong').textContent") == "good"
    link = "document.querySelector('.result .markdown a')"
    assert await inspector.page.evaluate(f"[{link}.href, {link}.rel].join(' ')") == (
        "https://example.com/book noopener noreferrer"
    )
    await inspector.click("Plain text")
    await inspector.text(".result pre", "**good**")
    await inspector.call("cover")
    await inspector.until("document.querySelector('.result img')?.naturalWidth === 48")
    await inspector.until("document.querySelector('.result audio')?.duration > 0")
    await inspector.click("Read shelf://about")
    await inspector.text(".detail .markdown", "It has two books.")
    await inspector.call("fail")
    assert "the shelf is locked" in await inspector.text(".result.problem", "The tool reports an error")


async def test_data_is_released_with_the_result_that_shows_it(inspector):
    await inspector.page.evaluate(OBJECT_URLS)
    for calls in (1, 2):
        await inspector.call("cover")
        await inspector.until(f"made === {2 * calls} && document.querySelector('.result img')?.naturalWidth === 48")
        assert await inspector.page.evaluate("kept.size") == 2
    # A panel that is hidden keeps its result.
    await inspector.tab("Prompts")
    assert await inspector.page.evaluate("kept.size") == 2
    await inspector.tab("Tools")
    await inspector.until("document.querySelector('.result audio')?.duration > 0")
    await inspector.do("choose", "review")
    await inspector.until("kept.size === 0")


async def test_progress_logs_and_cancellation(inspector):
    await inspector.call("scan", seconds="4")
    await inspector.until("document.querySelector('progress')?.max === 5")
    await inspector.text(".result", "done")
    await inspector.tab("Notifications")
    await inspector.text(".log", "board 4 has 12 books")
    await inspector.do("set", "Search notifications", "board 3 has")
    assert await inspector.page.evaluate("user.all('.log > *').length") == 1
    await inspector.call("scan", seconds="600")
    await inspector.click("Cancel")
    await inspector.text(".outcome .problem", "cancelled")


@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25"])
async def test_questions_are_answered_in_place(inspect, revision):
    inspector = await inspect("--revision", revision, "--", sys.executable, SERVER)
    await inspector.text("#status", f"({revision})")
    await inspector.call("order")
    await inspector.text("#questions", "Which book shall be ordered?")
    await inspector.fill(title="Ubik", copies="2", shelf="south")
    await inspector.click("Accept", "#questions")
    await inspector.text(".result", "ordered 2 of Ubik for south")
    assert await inspector.page.evaluate("document.querySelector('#questions').childElementCount") == 0
    await inspector.call("order")
    await inspector.click("Decline", "#questions")
    await inspector.text(".result.problem", "declined")
    await inspector.call("pay")
    shown = await inspector.text("#questions", "pay.example.com")
    assert "https://pay.example.com/orders/7" in shown
    await inspector.click("Accept", "#questions")
    await inspector.text(".result", "paid")
    await inspector.call("summarize")
    await inspector.text("#questions", "Summarize the book.")
    await inspector.fill(Text="A girl matches others.")
    await inspector.click("Answer", "#questions")
    await inspector.text(".result", "summary: A girl matches others.")


async def test_a_question_that_is_withdrawn_goes(inspector):
    await inspector.call("order")
    await inspector.text("#questions", "Which book")
    await inspector.click("Cancel", "#panels")
    await inspector.until("document.querySelector('#questions').childElementCount === 0")


async def test_roots_are_set(inspector):
    await inspector.tab("Connection")
    await inspector.click("Add to Roots")
    await inspector.do("set", "file:// URI", "file:///srv/books")
    await inspector.click("Set the roots now")
    await inspector.text("main", "The server gets these roots.")
    await inspector.call("folders")
    await inspector.text(".result", "file:///srv/books")


async def test_resources_templates_and_completion(inspector):
    await inspector.tab("Resources")
    await inspector.do("choose", "about")
    await inspector.click("Read")
    await inspector.text(".detail .markdown", "It has two books.")
    await inspector.do("choose", "book")
    await inspector.fill(title="U")
    await inspector.until(
        "[...document.querySelectorAll('datalist option')].map(it => it.value).join() === 'Ulysses,Ubik'"
    )
    await inspector.fill(title="Ubik")
    await inspector.click("Read")
    await inspector.text(".detail .result", "Ubik")
    await inspector.do("set", "URI", "shelf://nowhere")
    await inspector.click("Read", "#panel-Resources .side")
    await inspector.text(".detail .problem", "shelf://nowhere")


async def test_prompts_and_completion(inspector):
    await inspector.tab("Prompts")
    await inspector.do("choose", "recommend")
    await inspector.fill(topic="whales", tone="po")
    await inspector.until(
        "[...document.querySelectorAll('datalist option')].map(it => it.value).join() === 'polite,poetic'"
    )
    await inspector.fill(tone="poetic")
    await inspector.click("Get")
    await inspector.text(".message", "Recommend a book about whales in a poetic tone.")


@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25"])
async def test_subscriptions_and_changes_of_lists(inspect, revision):
    inspector = await inspect("--revision", revision, "--", sys.executable, SERVER)
    await inspector.text("#status", f"({revision})")
    await inspector.tab("Resources")
    await inspector.do("choose", "about")
    await inspector.click("Subscribe")
    await inspector.text(".detail", "Subscribed")
    await inspector.tab("Subscriptions")
    await inspector.text(".card", "shelf://about")
    await inspector.call("shelve", name="dust")
    # The list is fetched again without a reload by the user.
    await inspector.do("choose", "dust")
    await inspector.tab("Subscriptions")
    await inspector.text(".card", "1 update")
    await inspector.click("Unsubscribe")
    await inspector.text(".card", "ended")
    await inspector.tab("Notifications")
    await inspector.text(".log", "The list of tools changed.")


async def test_a_form_stays_while_the_list_changes(inspector):
    await inspector.call("shelve", name="first")
    await inspector.do("choose", "add")
    await inspector.fill(a="17")
    await inspector.tab("Connection")
    await inspector.page.evaluate("document.querySelector('details.raw summary').click()")
    await inspector.fill(Method="tools/call")
    await inspector.do("set", "Params as JSON", '{"name": "shelve", "arguments": {"name": "second"}}')
    await inspector.click("Send")
    await inspector.tab("Tools")
    await inspector.until("user.all('.choose .name').some(it => it.textContent === 'second')")
    assert await inspector.do("value", "a") == "17"


async def test_the_timeline_has_every_message(inspector):
    await inspector.call("add", a="2", b="40")
    await inspector.text(".result", "42")
    rows = "user.all('.frame').map(it => it.querySelector('summary').innerText.replace(/\\s+/g, ' '))"
    await inspector.until(f"{rows}.some(it => it.startsWith('←') && it.includes('tools/call') && it.includes('ms'))")
    shown = await inspector.page.evaluate(rows)
    assert any(row.startswith("→") and "server/discover" in row for row in shown)
    await inspector.do("set", "Direction", "→ To the server")
    await inspector.do("set", "Kind", "Requests")
    await inspector.do("set", "Search messages", '"A":2')
    await inspector.until("user.all('.frame').length === 1")
    await inspector.page.evaluate("document.querySelector('.frame summary').click()")
    assert "arguments" in await inspector.text(".frame .tree", 'name: "add"')
    await inspector.text("#timeline h2", "1 of")
    address = await inspector.page.evaluate("document.querySelector('#timeline a[download]').href")
    lines = (await inspector.page.evaluate(f"fetch({json.dumps(address)}).then(it => it.text())")).splitlines()
    head, *messages = map(json.loads, lines)
    # The header of `gudgeon record`, so that `gudgeon replay` reads the file.
    assert head["transcript"] == 1 and head["program"].startswith("gudgeon ")
    assert {message["from"] for message in messages} == {"client", "server"}
    assert any(message["message"].get("params", {}).get("arguments") == {"a": 2, "b": 40} for message in messages)
    times = [message["time"] for message in messages]
    assert times == sorted(times)


async def test_a_message_of_16_mib_is_loaded_on_demand(inspector):
    await inspector.call("large", mebibytes="8")
    await inspector.text(".result", "Show all")
    row = "user.all('.frame').find(it => it.innerText.includes('16.0 MiB'))"
    await inspector.until(row)
    # The page holds a preview until the whole is asked for.
    await inspector.page.evaluate(f"{row}.querySelector('summary').click()")
    await inspector.until(f"{row}.querySelector('pre')")
    assert await inspector.page.evaluate(f"{row}.querySelector('pre').textContent.length") < 2000
    await inspector.click("Load all 16.0 MiB", "#timeline")
    await inspector.text("#timeline .hint", "are shown")
    assert await inspector.page.evaluate(f"{row}.querySelector('pre').textContent.length") > 200_000
    await inspector.do("set", "Search messages", "xneedle")
    await inspector.until("user.all('.frame').length && user.all('.frame').every(it => it.innerText.includes('MiB'))")


async def test_a_reload_shows_what_was(inspector):
    await inspector.call("add", a="2", b="40")
    await inspector.text(".result", "42")
    assert "token" not in await inspector.page.url()
    inspector.url = (await inspector.page.url()).split("#")[0]
    await inspector.open()
    await inspector.text("#status", "Connected to shelf")
    await inspector.until("user.all('.frame').some(it => it.innerText.includes('tools/call'))")


async def test_the_keyboard_is_enough(inspector):
    page = inspector.page
    await inspector.tab("Connection")
    await page.evaluate("document.querySelector('[role=tab][aria-selected=true]').focus()")
    await page.key("ArrowRight", 39)
    assert await page.evaluate("document.activeElement.textContent") == "Tools"
    await inspector.until("user.all('.choose').length > 5")
    for _ in range(30):
        await page.key("Tab", 9)
        if await page.evaluate("document.activeElement.querySelector('.name')?.textContent") == "add":
            break
    await page.key("Enter", 13, text="\r")
    await inspector.until("user.value('a') !== undefined")
    for _ in range(60):
        await page.key("Tab", 9)
        if await page.evaluate("user.all('.detail textarea, .detail input').indexOf(document.activeElement)") == 0:
            break
    await page.key("4", 52, text="4")
    await page.key("Tab", 9)
    await page.key("5", 53, text="5")
    await page.call("Input.dispatchKeyEvent", type="keyDown", key="Enter", windowsVirtualKeyCode=13, modifiers=2)
    await inspector.text(".result", "9")


async def test_the_theme_is_kept(inspector):
    await inspector.page.evaluate("user.set('Theme', 'Dark')")
    dark = "getComputedStyle(document.body).backgroundColor"
    assert await inspector.page.evaluate(dark) == "rgb(20, 23, 28)"
    inspector.url = (await inspector.page.url()).split("#")[0]
    await inspector.open()
    assert await inspector.page.evaluate(dark) == "rgb(20, 23, 28)"


async def test_without_a_target_the_page_asks_for_one(page, started):
    process = started()
    inspector = Inspector(page, process.url)
    await inspector.open()
    await inspector.text("#status", "Not connected")
    await inspector.do("set", "Transport", "Command (stdio)")
    await inspector.do("set", "Program and arguments", f"{sys.executable}\n{SERVER}")
    await inspector.click("Connect")
    await inspector.text("#status", "Connected to shelf")
    with pytest.raises(urllib.error.HTTPError):
        urllib.request.urlopen(process.origin)
