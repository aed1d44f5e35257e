"""Installs official SDKs and published servers into `.interop/` from the lock files in `peers/`."""

import fcntl
import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOCKS = ROOT / "tests/interop/peers"
SCRATCH = ROOT / ".interop"
VENVS = {
    "py2": "requirements-mcp2.txt",
    "py1": "requirements-mcp1.txt",
    "pyservers": "requirements-servers.txt",
    "fastmcp": "requirements-fastmcp.txt",
}
UV = [str(ROOT / ".venv/uv/bin/uv"), "--quiet"]
RMCP = ["cargo", "build", "--quiet", "--locked", "--manifest-path", LOCKS / "rmcp/Cargo.toml", "--target-dir"]


def set_up(*names):
    """Installs the named environments, or all of them, if their lock file has changed, and builds rmcp's client."""
    SCRATCH.mkdir(exist_ok=True)
    # One process after the other, because pytest's workers all call this.
    with (SCRATCH / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for name, requirements in VENVS.items():
            if not names or name in names:
                _once(SCRATCH / name, [LOCKS / requirements], _venv)
        if not names or "node" in names:
            _once(SCRATCH / "node", [LOCKS / "package.json", LOCKS / "package-lock.json", LOCKS / ".npmrc"], _npm)
        if not names or "rmcp" in names:
            # Cargo knows itself what has changed.
            _run([str(word) for word in [*RMCP, SCRATCH / "rmcp"]])


def _once(folder, locks, make):
    stamp = folder / ".stamp"
    wanted = hashlib.sha256(b"".join(lock.read_bytes() for lock in locks)).hexdigest()
    if stamp.is_file() and stamp.read_text() == wanted:
        return
    print(f"setting up {folder.relative_to(ROOT)}", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    make(folder, locks)
    stamp.write_text(wanted)


def _venv(folder, locks):
    _run([*UV, "venv", "--python", sys.executable, str(folder)])
    python = str(folder / "bin/python")
    _run([*UV, "pip", "install", "--system-certs", "--compile-bytecode", "--python", python, "-r", str(locks[0])])


def _npm(folder, locks):
    folder.mkdir()
    for lock in locks:
        shutil.copy(lock, folder)
    _run(["npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"], cwd=folder)


def _run(command, cwd=ROOT):
    done = subprocess.run(command, check=False, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed with status {done.returncode}:\n{done.stdout[-4000:]}")


if __name__ == "__main__":
    set_up(*sys.argv[1:])
