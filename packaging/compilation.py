"""The environment in which the packages are compiled. What is compiled there contains no path of this machine.

python3 packaging/compilation.py COMMAND…    runs a command in it, such as `cargo build --release`
"""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def environment():
    """Returns the environment variables of compilers, with those of this process."""
    home = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo"))
    sysroot = subprocess.run(["rustc", "--print", "sysroot"], check=True, capture_output=True, text=True).stdout.strip()
    hidden = {ROOT: "/gudgeon", home / "registry/src": "/cargo", sysroot: "/rust"}
    # The variable would take the place of those that this file sets.
    c_flags = re.search(r'^CFLAGS = "(.*)"$', (ROOT / ".cargo/config.toml").read_text(), re.M)[1]
    return {
        **os.environ,
        "RUSTFLAGS": " ".join(f"--remap-path-prefix={path}={name}" for path, name in hidden.items()),
        "CFLAGS": " ".join([c_flags, *(f"-ffile-prefix-map={path}={name}" for path, name in hidden.items())]),
        # The interface of every Python from 3.10. With both variables cargo and maturin compile the same.
        "PYO3_CONFIG_FILE": str(ROOT / "packaging/pyo3-config.txt"),
        "PYO3_BUILD_EXTENSION_MODULE": "1",
    }


if __name__ == "__main__":
    sys.exit(subprocess.run(sys.argv[1:], check=False, cwd=ROOT, env=environment()).returncode)
