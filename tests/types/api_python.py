"""Type-checks the usage file of the agreed API, if available, against the installed package, and imports it."""

import subprocess
import sys
import tempfile
from pathlib import Path

api = Path(sys.argv[1]) / "python"
if not api.is_dir():
    print(f"skipped: shared api not found at {api}")
    sys.exit(0)
bin = Path(sys.executable).parent
usage = (api / "usage.py").read_text()
with tempfile.TemporaryDirectory() as folder:
    # A copy, so that no file beside the original can shadow the package.
    copy = Path(folder) / "usage.py"
    copy.write_text(usage)
    config = Path(folder) / "pyrightconfig.json"
    config.write_text('{"typeCheckingMode": "strict", "pythonVersion": "3.11"}')
    checks = [
        [bin / "mypy", "--strict", "--config-file=", copy],
        [bin / "pyright", "--pythonpath", sys.executable, "--project", folder, copy],
        [sys.executable, "-W", "error", copy],
    ]
    if "pyright" not in (bin / "pyright").name:
        sys.exit("pyright is missing")
    failed = [
        str(command[0].name if isinstance(command[0], Path) else command[0])
        for command in checks
        if subprocess.run([str(a) for a in command], check=False, cwd=folder).returncode
    ]
sys.exit(f"failed: {', '.join(failed)}" if failed else 0)
