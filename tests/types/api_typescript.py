"""Type-checks the usage file of the agreed API, if available, against the built package."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
api = Path(sys.argv[1]) / "typescript"
if not api.is_dir():
    print(f"skipped: shared api not found at {api}")
    sys.exit(0)
# Inside the project, so that its packages and the project itself are resolved as for a user.
folder = ROOT / "target/api-typescript"
shutil.rmtree(folder, ignore_errors=True)
folder.mkdir(parents=True)
shutil.copy(api / "usage.ts", folder / "usage.mts")
config = {
    "compilerOptions": {
        "strict": True,
        "exactOptionalPropertyTypes": True,
        "noUncheckedIndexedAccess": True,
        "noEmit": True,
        "module": "nodenext",
        "moduleResolution": "nodenext",
        "target": "es2023",
        "lib": ["es2023", "esnext.disposable", "dom"],
        "types": ["node"],
        "typeRoots": [str(ROOT / "node_modules/@types")],
        "skipLibCheck": False,
    },
    "files": ["usage.mts"],
}
(folder / "tsconfig.json").write_text(json.dumps(config))
(folder / "package.json").write_text('{"type": "module"}')
packages = folder / "node_modules"
packages.mkdir()
(packages / "gudgeon").symlink_to(ROOT, target_is_directory=True)
sys.exit(subprocess.run([ROOT / "node_modules/.bin/tsc", "-p", folder], check=False).returncode)
