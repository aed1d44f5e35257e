"""Builds the wheel from the source distribution alone, into an empty environment, and imports it there."""

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MATURIN = Path(sys.executable).with_name("maturin")


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def run(*command, cwd=folder):
            subprocess.run([str(word) for word in command], cwd=cwd, check=True)

        run(MATURIN, "sdist", "--out", folder, cwd=ROOT)
        (archive,) = folder.glob("gudgeon-*.tar.gz")
        run("tar", "--extract", "--file", archive)
        source = folder / archive.name.removesuffix(".tar.gz")
        # The profile is not what is tested here.
        run(
            MATURIN,
            "build",
            "--quiet",
            "--profile",
            "dev",
            "--target-dir",
            ROOT / "target/source",
            "--out",
            folder,
            cwd=source,
        )
        run(sys.executable, "-m", "venv", folder / "venv")
        python = folder / "venv/bin/python"
        run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *folder.glob("*.whl"))
        run(python, "-W", "error", "-c", "import gudgeon; gudgeon.Server('x')")


if __name__ == "__main__":
    main()
