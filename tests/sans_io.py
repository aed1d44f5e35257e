"""Checks that the core without default features does not depend on tokio."""

import subprocess
import sys

command = ["cargo", "tree", "--package", "gudgeon", "--no-default-features", "--edges", "normal", "--prefix", "none"]
tree = subprocess.run(command, check=True, capture_output=True, text=True).stdout
print(tree)
found = [line for line in tree.splitlines() if line.startswith(("tokio ", "rustix ", "mio "))]
sys.exit(f"not sans-IO: {found}" if found else 0)
