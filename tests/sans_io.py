"""Checks what the core depends on, and that it compiles without warnings, with different features.

Without features there is no tokio, without `http` no hyper, without `tls` no rustls, without `keyring` no D-Bus. An
address that needs a missing feature is an error that names the feature. The tests of `keyring`, which no other stage
runs, run here.
"""

import subprocess
import sys

FORBIDDEN = {
    "": ("tokio", "rustix", "mio"),
    "server": ("hyper", "rustls", "tungstenite", "tokio-tungstenite", "tokio-rustls"),
    "http": ("rustls", "tungstenite", "tokio-tungstenite", "tokio-rustls"),
    "client": ("rustls", "tungstenite", "tokio-tungstenite", "tokio-rustls"),
    "client,tls": ("tungstenite", "tokio-tungstenite"),
    "client,websocket": ("rustls", "tokio-rustls"),
    "auth,client,tls,websocket": ("keyring", "keyring-core", "zbus"),
}
COMPILED = ["", "server", "server,http", "client", "client,http", "client,http,tls", "client,http,websocket"]
CHOSEN = ["--quiet", "--package", "gudgeon", "--no-default-features", "--features"]


def run(*command):
    ran = subprocess.run(["cargo", *command], check=False, capture_output=True, text=True)
    print(ran.stdout)
    if ran.returncode or "warning" in ran.stderr:
        sys.exit(f"cargo {' '.join(command)}:\n{ran.stderr}")
    return ran.stdout


for features, forbidden in FORBIDDEN.items():
    tree = run("tree", *CHOSEN, features, "--edges", "normal", "--prefix", "none")
    found = [line for line in tree.splitlines() if line.split(" ")[0] in forbidden]
    if found:
        sys.exit(f"with the features {features!r} gudgeon must not depend on {found}")
for features in COMPILED:
    run("check", *CHOSEN, features)
run("test", *CHOSEN, "client", "--test", "missing_features")
run("test", *CHOSEN, "keyring", "--lib", "keyring_store")
