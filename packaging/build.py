"""Builds the wheel, the npm package and the command as they are published, into target/package.

python3 packaging/build.py

The packages are built once: the tests install the wheel, load the files of the npm package, and run the command.
"""

import base64
import hashlib
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from compilation import ROOT, environment

OUT = ROOT / "target/package"
BIN = Path(sys.executable).parent
# Where the compiler writes the types of the Node binding, and `build.mjs` looks for them.
TYPES = ROOT / "target/release/napi-types"
PACKAGES = ("gudgeon-python", "gudgeon-node", "gudgeon-cli")


def main():
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    compilation = {**environment(), "NAPI_TYPE_DEF_TMP_FOLDER": str(TYPES)}
    TYPES.mkdir(parents=True, exist_ok=True)

    def run(*command):
        subprocess.run([str(word) for word in command], cwd=ROOT, env=compilation, check=True)

    # All at once, because linking takes most of the time and has one thread. What follows finds them compiled.
    run("cargo", "build", "--quiet", "--release", *(word for name in PACKAGES for word in ("--package", name)))
    run("node", "bindings-node/build.mjs", "--profile", "release")
    run("npm", "run", "--silent", "build:ts")
    program = Path(shutil.copy(ROOT / "target/release/gudgeon", OUT))
    (ROOT / "bin").mkdir(exist_ok=True)
    shutil.copy(program, ROOT / "bin")
    run("npm", "pack", "--silent", "--ignore-scripts", "--pack-destination", OUT)
    run(BIN / "maturin", "build", "--quiet", "--release", "--out", OUT)
    (wheel,) = OUT.glob("gudgeon-*.whl")
    add_script(wheel, program)
    run(BIN / "python", "-m", "pip", "install", "--quiet", "--force-reinstall", "--no-deps", wheel)


def add_script(wheel, program):
    """Adds a program to a wheel. Installers copy it to where the environment has its programs."""
    name, version = wheel.name.split("-")[:2]
    script, record = f"{name}-{version}.data/scripts/{program.name}", f"{name}-{version}.dist-info/RECORD"
    content = program.read_bytes()
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    entry = zipfile.ZipInfo(script)
    entry.external_attr = 0o100755 << 16
    unfinished = wheel.with_suffix(".new")
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED) as new:
        for old_entry in old.infolist():
            # The record is the last entry, and lists the others.
            if old_entry.filename != record:
                new.writestr(old_entry, old.read(old_entry), zipfile.ZIP_DEFLATED)
        new.writestr(entry, content, zipfile.ZIP_DEFLATED)
        line = f"{script},sha256={digest},{len(content)}\n"
        new.writestr(old.getinfo(record), old.read(record) + line.encode())
    unfinished.replace(wheel)


if __name__ == "__main__":
    main()
