"""The configurations of the documentation, and servers behind proxies that run with them."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from proxies import HAProxy, Nginx, Proxy, block
from shelf_replicas import Replica, running

PUBLIC = {
    "allowed_hosts": ["shelf.example.com"],
    "trusted_proxies": ["127.0.0.1"],
    "health": "/healthz",
    "ready": "/readyz",
}
# With the proxy protocol, the server has the certificate.
RELAYED = {**PUBLIC, "proxy_protocol": True}


class Configuration(NamedTuple):
    """A configuration file of the documentation."""

    document: str
    name: str
    proxy: type[Proxy]
    replicas: int = 1
    # All requests of a session go to one server.
    is_sticky: bool = True
    # The proxy relays TCP.
    is_relay: bool = False
    # Another file, whose content takes the place of the text that matches `replaced`.
    part: str = ""
    replaced: str = ""

    @property
    def hides_probes(self) -> bool:
        """Returns whether it passes on some paths only."""
        return "location /mcp" in self.text() or "/healthz" in self.text()

    def __str__(self) -> str:
        return f"{self.document.removeprefix('docs/')} {self.part or self.name}"

    def text(self) -> str:
        """Returns the whole file."""
        text = block(self.document, self.name)
        if self.part:
            text, times = re.subn(self.replaced, block(self.document, self.part), text, flags=re.S)
            assert times == 1, self
        return text


CONFIGURATIONS = [
    Configuration("docs/behind-proxies.md", "shelf.conf", Nginx),
    Configuration("docs/behind-proxies.md", "stream.conf", Nginx, is_relay=True),
    Configuration("docs/behind-proxies.md", "http.cfg", HAProxy),
    Configuration("docs/behind-proxies.md", "tcp.cfg", HAProxy, is_relay=True),
    Configuration("docs/replicas.md", "shelf.conf", Nginx, replicas=2, is_sticky=False),
    Configuration("docs/replicas.md", "haproxy.cfg", HAProxy, replicas=2, is_sticky=False),
    Configuration(
        "docs/replicas.md", "shelf.conf", Nginx, replicas=2, part="sticky.conf", replaced=r"upstream shelf \{.*?\n\}\n"
    ),
    Configuration(
        "docs/replicas.md", "haproxy.cfg", HAProxy, replicas=2, part="sticky.cfg", replaced=r"    balance roundrobin\n"
    ),
]


class Site(NamedTuple):
    """Replicas behind a proxy."""

    configuration: Configuration
    proxy: Proxy
    replicas: list[Replica]
    folder: Path


def started(configuration: Configuration, folder: Path, certificate: list[str], **options: object) -> Iterator[Site]:
    options = {**(RELAYED if configuration.is_relay else PUBLIC), **options}
    if configuration.is_relay:
        options |= {"scheme": "https", "tls": certificate}
    with (
        running(configuration.replicas, folder, **options) as replicas,
        configuration.proxy(configuration.text(), replicas, folder, certificate) as proxy,
    ):
        yield Site(configuration, proxy, replicas, folder)
