"""Checks where dependencies come from: registries only, with checksums, in exact versions. Needs no network.

Cargo.lock names no source but crates.io and has a checksum of each package; packages without a source are members of
the workspace. npm's lock files have an integrity of each package and no address outside of the registry. The Python
packages of tests are pinned with `==`. A dependency in a manifest has no git source, no address, and no path out of the
repository.
"""

import functools
import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CRATES = "registry+https://github.com/rust-lang/crates.io-index"
NPM = "https://registry.npmjs.org/"
PINNED = re.compile(r"[A-Za-z0-9][\w.-]*(\[[\w,-]+\])?==[\w.!+]+( *;.*)?")
FIELD = re.compile(r'^(name|source|checksum) = "(.*)"$', re.M)
REQUIREMENTS = re.compile(r"requirements[\w-]*\.txt")


def main():
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    files = [ROOT / name for name in listed.split("\0") if name]
    problems, checked = [], 0
    for path in files:
        check = check_of(path)
        if check:
            text = path.read_text(encoding="utf-8")
            count, found = check(text, path)
            checked += count
            problems += [f"{path.relative_to(ROOT)}: {problem}" for problem in found]
    print("\n".join([*problems, f"{checked} dependencies, {len(problems)} problems"]))
    return 1 if problems or not checked else 0


def check_of(path):
    if path.name == "Cargo.lock":
        return cargo_lock
    if path.name == "package-lock.json":
        return npm_lock
    if path.name == "package.json":
        return npm_manifest
    return requirements if REQUIREMENTS.fullmatch(path.name) else None


def cargo_lock(text, path):
    members = {member["name"] for member in workspace(path)}
    packages = [dict(FIELD.findall(block)) for block in text.split("[[package]]")[1:]]
    problems = []
    for package in packages:
        name, source = package["name"], package.get("source")
        if source is None:
            if name not in members:
                problems.append(f"{name} has no source and is not a member of the workspace")
        elif source != CRATES:
            problems.append(f"{name} comes from {source}, not from crates.io")
        elif not re.fullmatch("[0-9a-f]{64}", package.get("checksum", "")):
            problems.append(f"{name} has no checksum")
    for member in workspace(path):
        for dependency in member["dependencies"]:
            source, folder = dependency["source"], dependency.get("path")
            if source is None and not Path(folder).is_relative_to(ROOT):
                problems.append(f"{member['name']} needs {dependency['name']} from {folder}, out of the repository")
            elif source not in (None, CRATES):
                problems.append(f"{member['name']} needs {dependency['name']} from {source}, not from crates.io")
    return len(packages), problems


@functools.cache
def workspace(path):
    """Returns the members of the workspace that this lock file belongs to, with their dependencies."""
    command = ["cargo", "metadata", "--no-deps", "--offline", "--format-version", "1"]
    ran = subprocess.run(command, cwd=path.parent, check=True, capture_output=True, text=True)
    return json.loads(ran.stdout)["packages"]


def npm_lock(text, _):
    packages = {key: package for key, package in json.loads(text)["packages"].items() if key}
    problems = []
    for key, package in packages.items():
        if package.get("link") or "node_modules/" not in key:
            problems.append(f"{key} is a folder, not a package of the registry")
        elif not package.get("resolved", NPM).startswith(NPM):
            problems.append(f"{key} comes from {package['resolved']}, not from {NPM}")
        elif not package.get("integrity", "").startswith("sha512-"):
            problems.append(f"{key} has no sha512 integrity")
    return len(packages), problems


def npm_manifest(text, _):
    manifest = json.loads(text)
    problems = []
    count = 0
    for key in ("dependencies", "devDependencies", "optionalDependencies", "peerDependencies", "overrides"):
        for name, version in manifest.get(key, {}).items():
            count += 1
            if re.search(r"[:/]", str(version)) and not str(version).startswith("npm:"):
                problems.append(f"{name} comes from {version}; take it from the registry")
    return count, problems


def requirements(text, _):
    lines = [line.split(" #")[0].strip() for line in text.splitlines()]
    lines = [line for line in lines if line and not line.startswith("#")]
    return len(lines), [f"{line!r} is not pinned with `==`" for line in lines if not PINNED.fullmatch(line)]


if __name__ == "__main__":
    sys.exit(main())
