"""A language server, asked as an editor asks it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


class LanguageServer:
    """pyright's language server, looking at one file in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._last = 0
        config = {"venvPath": str(ROOT), "venv": ".venv"}
        (folder / "pyrightconfig.json").write_text(json.dumps(config))
        command = [str(Path(sys.executable).with_name("pyright-langserver")), "--stdio"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __enter__(self) -> LanguageServer:
        capabilities = {
            "workspace": {"configuration": True},
            "textDocument": {"hover": {"contentFormat": ["plaintext"]}},
        }
        self._request("initialize", {"processId": None, "rootUri": self._folder.as_uri(), "capabilities": capabilities})
        self._send({"method": "initialized", "params": {}})
        return self

    def __exit__(self, *exc: object) -> None:
        self._process.kill()
        self._process.communicate()

    def open(self, text: str) -> Path:
        path = self._folder / "program.py"
        path.write_text(text)
        document = {"uri": path.as_uri(), "languageId": "python", "version": 1, "text": text}
        self._send({"method": "textDocument/didOpen", "params": {"textDocument": document}})
        return path

    def hover(self, path: Path, line: int, column: int) -> str:
        """The text that an editor shows for what stands at this place, counted from 0."""
        place = {"textDocument": {"uri": path.as_uri()}, "position": {"line": line, "character": column}}
        found = self._request("textDocument/hover", place)
        return "" if found is None else str(found["contents"]["value"])

    def _request(self, method: str, params: Any) -> Any:
        self._last += 1
        self._send({"id": self._last, "method": method, "params": params})
        while True:
            message = self._receive()
            if "method" not in message and message.get("id") == self._last:
                return message["result"]
            if "method" in message and "id" in message:
                asked = message["params"].get("items", ()) if isinstance(message["params"], dict) else ()
                configured = [{"pythonPath": sys.executable} for _ in asked]
                self._send({"id": message["id"], "result": configured or None})

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self._process.stdin.flush()

    def _receive(self) -> Any:
        assert self._process.stdout is not None
        length = 0
        while line := self._process.stdout.readline().strip():
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        assert length, "the language server ended"
        return json.loads(self._process.stdout.read(length))
