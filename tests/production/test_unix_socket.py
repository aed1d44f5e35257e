"""nginx in front of a Unix socket, as a comment of its configuration says."""

from pathlib import Path

import speak
from documented_sites import PUBLIC
from proxies import Nginx, block, without_tls
from shelf_replicas import UnixReplica

TCP = "server 127.0.0.1:8000;"


def test_nginx_reaches_a_server_at_a_unix_socket(tmp_path: Path) -> None:
    text = block("docs/behind-proxies.md", "shelf.conf")
    assert TCP in text and "or: server unix:/run/shelf.sock;" in text
    options = {**PUBLIC, "trusted_proxies": ["unix"], "with_auth": True}
    replica = UnixReplica(tmp_path, **options)
    try:
        text = without_tls(text).replace(TCP, f"server unix:{replica.path};")
        with Nginx(text, [], tmp_path, None) as proxy, proxy.connect(source="127.0.0.2") as connection:
            headers = {"Authorization": "Bearer ada"}
            answer = speak.call_modern(proxy, "echo", {"text": "hello"}, connection=connection, headers=headers)
        assert speak.text_of(speak.reply(answer)) == "hello"
        assert (tmp_path / "clients").read_text().split() == ["127.0.0.2"]
        replica.terminate()
        replica.ends()
        assert not replica.path.exists()
    finally:
        replica.kill()
