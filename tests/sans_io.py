"""Checks what the core depends on: no tokio without features, no hyper without `http`, no rustls without `tls`."""

import subprocess
import sys

FORBIDDEN = {
    "": ("tokio", "rustix", "mio"),
    "server": ("hyper", "rustls", "tungstenite", "tokio-tungstenite", "tokio-rustls"),
    "http": ("rustls", "tungstenite", "tokio-tungstenite", "tokio-rustls"),
    "client": ("rustls", "tungstenite", "tokio-tungstenite", "tokio-rustls"),
    "client,tls": ("tungstenite", "tokio-tungstenite"),
    "client,websocket": ("rustls", "tokio-rustls"),
}
COMMAND = ["cargo", "tree", "--package", "gudgeon", "--no-default-features", "--edges", "normal", "--prefix", "none"]

for features, forbidden in FORBIDDEN.items():
    command = [*COMMAND, "--features", features]
    tree = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    print(tree)
    found = [line for line in tree.splitlines() if line.split(" ")[0] in forbidden]
    if found:
        sys.exit(f"with the features {features!r} gudgeon must not depend on {found}")
