"""Checks what the core depends on with each feature, that it compiles without warnings, and the tests of rare features.

Without `http` there is no hyper, without `tls` no rustls, without `keyring` no D-Bus, without `redis` and `sqlite` no
databases. An address that needs a missing
feature is an error that names the feature. The tests of `keyring`, which no other stage runs, run here.
"""

import subprocess
import sys

FORBIDDEN = {
    "server": ("hyper", "h2", "rustls", "tungstenite", "tokio-tungstenite", "tokio-rustls"),
    "http": ("rustls", "tungstenite", "tokio-tungstenite", "tokio-rustls"),
    "client": ("rustls", "tungstenite", "tokio-tungstenite", "tokio-rustls"),
    "client,tls": ("tungstenite", "tokio-tungstenite"),
    "client,websocket": ("rustls", "tokio-rustls"),
    "auth,client,tls,websocket": ("keyring", "keyring-core", "zbus", "redis", "rusqlite"),
}
COMPILED = [
    "server",
    "server,http",
    "client",
    "client,http",
    "client,http,tls",
    "client,http,websocket",
    "server,redis",
    "server,sqlite",
]
CHOSEN = ["--quiet", "--package", "gudgeon", "--no-default-features", "--features"]


def main():
    for features, forbidden in FORBIDDEN.items():
        forbid(features, forbidden)
    for features in COMPILED:
        check(features)
    # As free-threaded builds of Python take it.
    run("check", "--quiet", "--package", "gudgeon-python", "--no-default-features")
    run("test", *CHOSEN, "client", "--test", "missing_features")
    run("test", *CHOSEN, "keyring", "--lib", "keyring_store")


def forbid(features, packages):
    """Ends the program if the core depends on one of the packages with these features."""
    tree = run("tree", *CHOSEN, features, "--edges", "normal", "--prefix", "none")
    found = [line for line in tree.splitlines() if line.split(" ")[0] in packages]
    if found:
        sys.exit(f"with the features {features!r} gudgeon must not depend on {found}")


def check(features):
    """Ends the program if the core does not compile without warnings with these features."""
    run("check", *CHOSEN, features)


def run(*command):
    ran = subprocess.run(["cargo", *command], check=False, capture_output=True, text=True)
    print(ran.stdout)
    if ran.returncode or "warning" in ran.stderr:
        sys.exit(f"cargo {' '.join(command)}:\n{ran.stderr}")
    return ran.stdout


if __name__ == "__main__":
    main()
