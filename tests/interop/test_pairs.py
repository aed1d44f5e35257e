"""The matrix is complete, and a server that can't be reached or exits with an error is reported."""

import sys
import unittest

import pairs
import run
from shared_server import SharedServer


class Matrix(unittest.TestCase):
    def test_every_official_client_meets_each_of_our_servers_over_http_and_sse(self):
        rows = {(pair.row, pair.column) for pair in pairs.pairs("all")}
        whole = (name for name, client in pairs.clients["official"].items() if "suites" not in client)
        for client in whole:
            for server in pairs.servers["ours"]:
                for transport in ("http", "sse"):
                    self.assertIn((f"official {client}, {transport}, legacy", f"ours {server}"), rows)
        for client in ("mcp 2", "ts 2"):
            self.assertIn((f"official {client}, http, auto", "ours rust"), rows)

    def test_our_clients_meet_every_server_of_others(self):
        titles = {pair.title for pair in pairs.pairs("all")}
        for client, program in pairs.clients["ours"].items():
            for side in ("official", "published"):
                for name, server in pairs.servers[side].items():
                    served = [
                        *(["stdio"] if "command" in server else []),
                        *(u for process in server.get("serves", []) for u in process["urls"]),
                    ]
                    for transport in served:
                        for era in program["eras"][transport]:
                            self.assertIn(f"ours {client}, {transport}, {era} → {side} {name}", titles)

    def test_every_official_client_reaches_upstream_servers_in_each_of_its_revisions(self):
        through = [pair for pair in pairs.pairs("all") if pair.column.startswith(pairs.THROUGH)]
        self.assertEqual(len({pair.column for pair in through}), 4)
        for server in {pair.column for pair in through}:
            for client, newest in {
                "mcp 1": pairs.LEGACY,
                "mcp 2": pairs.MODERN,
                "ts 1": pairs.LEGACY,
                "ts 2": pairs.MODERN,
            }.items():
                for transport in ("stdio", "http"):
                    met = [
                        p for p in through if p.column == server and p.row.startswith(f"official {client}, {transport}")
                    ]
                    expected = {"2024-11-05", "2025-06-18", pairs.LEGACY, newest}
                    self.assertEqual({pair.revision for pair in met}, expected, f"{client}, {transport}, {server}")

    def test_names_of_upstream_servers_have_their_prefix(self):
        step = {"do": "cancel", "name": "slow", "witness": "cancelled", "expect": {"cancelled": 1}}
        self.assertEqual(pairs.prefixed(step, "up"), {**step, "name": "up_slow", "witness": "up_cancelled"})
        listed = {"do": "list_tools", "expect": {"$contains": ["add"]}}
        self.assertEqual(pairs.prefixed(listed, "up")["expect"], {"$contains": ["up_add"]})
        connected = {"do": "connect", "expect": {"server": "other", "revision": "r"}}
        self.assertEqual(pairs.prefixed(connected, "up")["expect"], {"server": "interop", "revision": "r"})

    def test_ours_meet_ours_once_a_transport_and_era_and_each_binding_is_both_sides_of_each_transport(self):
        ours = [pair for pair in pairs.pairs("all") if {"ours"} == {pair.row.split()[0], pair.column.split()[0]}]
        transports = ("http", "sse", "ws", "tcp", "unix")
        self.assertEqual(
            sorted((pair.transport, pair.era) for pair in ours),
            sorted((transport, era) for transport in transports for era in ("auto", "legacy")),
        )
        for transport in transports:
            of_transport = [pair for pair in ours if pair.transport == transport]
            self.assertEqual({pair.row.split()[1].strip(",") for pair in of_transport}, {"python", "node"})
            self.assertEqual({pair.column for pair in of_transport}, {"ours python", "ours node"})

    def test_all_pairs_of_ours_are_in_different_languages(self):
        titles = {pair.title for pair in pairs.pairs("ours")}
        for transport in ("http", "sse", "ws", "tcp", "unix"):
            self.assertIn(f"ours python sync, {transport}, auto → ours rust", titles)
            self.assertNotIn(f"ours python sync, {transport}, auto → ours python", titles)

    def test_the_modern_revision_is_expected_where_both_sides_speak_it(self):
        revisions = {pair.title: pair.revision for pair in pairs.pairs("all")}
        self.assertEqual(revisions["ours node, ws, auto → ours python"], pairs.MODERN)
        self.assertEqual(revisions["official ts 1, ws, legacy → ours rust"], pairs.LEGACY)
        self.assertEqual(revisions["ours python sync, sse, auto → ours node"], pairs.LEGACY)
        self.assertEqual(revisions["ours rust, http, auto → official mcp 1"], pairs.LEGACY)


class Servers(unittest.TestCase):
    def test_one_that_ends_at_once_fails_all_checks(self):
        pair = _pair("raise SystemExit('Error: no')")
        run.meet_all([pair])
        self.assertEqual(set(pair.failures), {step["check"] for step in pair.steps} | {"server"})
        self.assertIn("Error: no", pair.failures["connect"])

    def test_one_that_exits_with_an_error_is_reported(self):
        listens = "import socket, sys; it = socket.create_server(('127.0.0.1', int(sys.argv[1]))); "
        server = SharedServer(_how(listens + "import time; time.sleep(60)"), is_ours=True)
        server.url("http")
        self.assertIn("exit -15 after SIGTERM", server.close())


def _pair(program):
    pair = pairs.Pair("official", "mcp 1", "http", "legacy", "ours", "rust")
    pair.server = {**pair.server, "serves": [_how(program)]}
    return pair


def _how(program):
    return {"command": [sys.executable, "-c", program, "${port}"], "urls": {"http": "http://127.0.0.1:${port}/mcp"}}


if __name__ == "__main__":
    unittest.main()
