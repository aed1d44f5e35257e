"""The matrix is complete, and a server that can't be reached or exits with an error is reported."""

import sys
import unittest
from unittest import mock

import pairs
from shared_server import serve_all


class Matrix(unittest.TestCase):
    def test_every_official_client_meets_each_of_our_servers_over_http_and_sse(self):
        rows = {(pair.row, pair.column) for pair in pairs.pairs(official=False)}
        whole = (name for name, client in pairs.clients["official"].items() if "suites" not in client)
        for client in whole:
            for server in pairs.servers["ours"]:
                for transport in ("http", "sse"):
                    self.assertIn((f"official {client}, {transport}, legacy", f"ours {server}"), rows)
        for client in ("mcp 2", "ts 2"):
            self.assertIn((f"official {client}, http, auto", "ours rust"), rows)

    def test_ours_meet_ours_in_other_languages_only(self):
        ours = [pair for pair in pairs.pairs(official=False) if pair.column.startswith("ours")]
        titles = {pair.title for pair in ours}
        for transport in ("http", "sse", "ws", "tcp", "unix"):
            self.assertIn(f"ours python sync, {transport}, auto → ours node", titles)
            self.assertNotIn(f"ours python sync, {transport}, auto → ours python", titles)

    def test_the_modern_revision_is_expected_where_both_sides_speak_it(self):
        revisions = {pair.title: pair.revision for pair in pairs.pairs(official=False)}
        self.assertEqual(revisions["ours node, ws, auto → ours rust"], pairs.MODERN)
        self.assertEqual(revisions["ours node, ws, legacy → ours rust"], pairs.LEGACY)
        self.assertEqual(revisions["ours node, sse, auto → ours rust"], pairs.LEGACY)
        self.assertEqual(revisions["ours rust, http, auto → official mcp 1"], pairs.LEGACY)


class Servers(unittest.TestCase):
    def test_one_that_ends_at_once_fails_all_checks(self):
        pair = _pair("raise SystemExit('Error: no')")
        serve_all([pair])
        self.assertEqual(set(pair.failures), {step["check"] for step in pair.steps} | {"server"})
        self.assertIn("Error: no", pair.failures["connect"])

    def test_one_that_exits_with_an_error_is_reported(self):
        listens = "import socket, sys; it = socket.create_server(('127.0.0.1', int(sys.argv[1]))); it.accept(); "
        pair = _pair(listens + "import time; time.sleep(60)")
        with mock.patch.object(pair, "meet"):
            serve_all([pair])
        self.assertEqual(list(pair.failures), ["server"])
        self.assertIn("exit -15 after SIGTERM", pair.failures["server"])


def _pair(program):
    pair = pairs.Pair("official", "mcp 1", "http", "legacy", "ours", "rust")
    how = {"command": [sys.executable, "-c", program, "${port}"], "urls": {"http": "http://127.0.0.1:${port}/mcp"}}
    pair.server = {**pair.server, "serves": [how]}
    return pair


if __name__ == "__main__":
    unittest.main()
