"""Builds the wheel, the source distribution and the npm package as they are published, into target/package."""

import base64
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "target/package"
PROFILE = "dist"
# Of small functions that ask to be inlined, only those are that cost about as little as a call. This is 0.7 MB of 10.
INLINING = ("-Cllvm-args=-inlinehint-threshold=50", "-Cllvm-args=-inline-threshold=25")
# Only those that cost less than a call. This is another 0.2 MB. Small calls execute 6 % more.
LESS_INLINING = ("-Cllvm-args=-inlinehint-threshold=25", "-Cllvm-args=-inline-threshold=5")
# With a pointer to each frame, the tables that unwind it are shorter: 0.2 MB. Small calls execute 3 % more.
FRAMES = "-Cforce-frame-pointers=yes"
SMALL = (*LESS_INLINING, FRAMES)
# Functions with the same code are one. Rust's linker for this platform can do this.
MERGING = "-Clink-arg=-Wl,--icf=all"
# Files that npm reads besides the compiled ones.
NPM_FILES = ("package.json", "README.md", "LICENSE")


def build():
    """Builds all packages anew."""
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    # Linking takes most of the time and has one thread. The flags differ, so nothing that is compiled could be shared.
    with ThreadPoolExecutor(1) as pool:
        wheel = pool.submit(python_packages)
        program = command()
        npm_package(program)
    add_script(wheel.result(), program)


def command():
    """Builds the command `gudgeon`, which both packages contain. Returns its path."""
    run(["cargo", "build", "--quiet", "--profile", PROFILE, "--package", "gudgeon-cli"], flags=SMALL)
    return Path(shutil.copy(target_folder() / PROFILE / "gudgeon", OUT))


def python_packages():
    """Builds the source distribution, and from that the wheel, without the command. Returns the path of the wheel."""
    target = target_folder() / "wheel"
    # The sources in the distribution all have one time, so that cargo would not notice that they have changed.
    clean = ["cargo", "clean", "--quiet", "--profile", PROFILE, "--package", "gudgeon", "--package", "gudgeon-python"]
    run(clean, target=target)
    maturin = Path(sys.executable).with_name("maturin")
    build = [maturin, "build", "--quiet", "--profile", PROFILE, "--sdist", "--out", OUT]
    run(build, flags=INLINING, target=target)
    (wheel,) = OUT.glob("gudgeon-*.whl")
    return wheel


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
        for it in old.infolist():
            # The record is the last entry, and lists the others.
            if it.filename != record:
                new.writestr(it, old.read(it), zipfile.ZIP_DEFLATED)
        new.writestr(entry, content, zipfile.ZIP_DEFLATED)
        new.writestr(old.getinfo(record), old.read(record) + f"{script},sha256={digest},{len(content)}\n".encode())
    unfinished.replace(wheel)


def npm_package(program):
    folder = OUT / "npm"
    compiled = folder / "bindings-node/dist"
    shutil.copytree(ROOT / "bindings-node/dist", compiled, ignore=shutil.ignore_patterns("modules", "gudgeon.node"))
    for name in NPM_FILES:
        shutil.copy(ROOT / name, folder / name)
    run(["node", "bindings-node/build.mjs", "--profile", PROFILE, "--out", compiled], flags=SMALL)
    (folder / "bin").mkdir()
    shutil.copy(program, folder / "bin/gudgeon")
    run(["npm", "pack", "--silent", "--ignore-scripts", "--pack-destination", OUT], folder)


def run(command, cwd=ROOT, flags=(), target=None):
    """Runs a command that must succeed, with flags for rustc. What it compiles contains no path of this machine."""
    home = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo"))
    sysroot = subprocess.run(["rustc", "--print", "sysroot"], check=True, capture_output=True, text=True).stdout.strip()
    hidden = {ROOT: "/gudgeon", home / "registry/src": "/cargo", sysroot: "/rust"}
    # Without the registry's name, which each path of a dependency has and panics contain: 19 KB.
    hidden |= dict.fromkeys((home / "registry/src").glob("*"), "/cargo")
    flags = [*flags, *(f"--remap-path-prefix={path}={name}" for path, name in hidden.items())]
    if (sys.platform, platform.machine()) == ("linux", "x86_64"):
        flags.append(MERGING)
    c_flags = " ".join(f"-ffile-prefix-map={path}={name}" for path, name in hidden.items())
    environment = {
        **os.environ,
        "CARGO_TARGET_DIR": str(target or target_folder()),
        "RUSTFLAGS": " ".join(flags),
        "CFLAGS": c_flags,
    }
    subprocess.run([str(it) for it in command], cwd=cwd, env=environment, check=True)


def target_folder():
    return Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
