"""Looks for known vulnerabilities in the packages of every lock file, with the tools that are installed.

Rust: cargo-deny or cargo-audit, whose database is fetched, or was before. npm: `npm audit`, which asks the registry.
Python: pip-audit, which asks PyPI. For each file the output says what was found, or why it was not checked. A finding
fails; with `--all` a file that was not checked fails as well.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BIN = ROOT / ".venv/bin"


class NotCheckedError(Exception):
    """The reason why a file was not checked."""


def main(arguments):
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    found = unchecked = 0
    for name in filter(None, listed.split("\0")):
        path = ROOT / name
        check = CHECKS.get(path.name) or (pypi if path.match("requirements*.txt") else None)
        if check is None:
            continue
        try:
            tool, findings = check(path)
        except NotCheckedError as reason:
            unchecked += 1
            print(f"{name}: not checked: {reason}")
            continue
        found += len(findings)
        print(f"{name}: {len(findings)} found by {tool}", *findings, sep="\n  ")
    print(f"{found} vulnerabilities, {unchecked} files not checked")
    return 1 if found or (unchecked and "--all" in arguments) else 0


def crates(path):
    if shutil.which("cargo-deny"):
        command = ["cargo", "deny", "--format", "json", "--all-features", "check", "advisories"]
        ran = run(command, path.parent)
        lines = [json.loads(line) for line in ran.stderr.splitlines() if line.startswith("{")]
        kinds = [line["fields"] for line in lines if line.get("type") == "diagnostic"]
        errors = [diagnostic["message"] for diagnostic in kinds if diagnostic.get("severity") == "error"]
        if ran.returncode and not errors:
            raise NotCheckedError(last_line(ran.stderr))
        return "cargo-deny", errors
    if shutil.which("cargo-audit"):
        ran = run(["cargo", "audit", "--json", "--file", path], path.parent)
        report = read(ran)
        listed = report["vulnerabilities"]["list"]
        return "cargo-audit", [
            f"{finding['package']['name']} {finding['advisory']['id']} {finding['advisory']['title']}"
            for finding in listed
        ]
    raise NotCheckedError("neither cargo-deny nor cargo-audit is installed; run `cargo install cargo-audit`")


def npm(path):
    report = read(run(["npm", "audit", "--package-lock-only", "--json"], path.parent))
    if "vulnerabilities" not in report:
        raise NotCheckedError(report.get("message", "npm audit gave no report"))
    packages = report["vulnerabilities"].values()
    return "npm audit", [f"{package['name']} {package['range']}: {package['severity']}" for package in packages]


def pypi(path):
    tool = BIN / "pip-audit" if (BIN / "pip-audit").exists() else shutil.which("pip-audit")
    if tool is None:
        raise NotCheckedError("pip-audit is not installed; run `pip install pip-audit`")
    # All packages are pinned, so nothing has to be resolved or installed.
    report = read(run([tool, "--requirement", path, "--no-deps", "--disable-pip", "--format", "json"], ROOT))
    listed = [
        (dependency, vulnerability)
        for dependency in report["dependencies"]
        for vulnerability in dependency.get("vulns", [])
    ]
    return "pip-audit", [
        f"{dependency['name']} {dependency['version']} {vulnerability['id']}" for dependency, vulnerability in listed
    ]


def run(command, folder):
    try:
        return subprocess.run(
            [str(word) for word in command], cwd=folder, check=False, capture_output=True, text=True, timeout=600
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotCheckedError(error) from None


def read(ran):
    try:
        return json.loads(ran.stdout)
    except ValueError:
        raise NotCheckedError(last_line(ran.stderr)) from None


def last_line(text):
    return (text.strip().splitlines() or ["the tool said nothing"])[-1]


CHECKS = {"Cargo.lock": crates, "package-lock.json": npm}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
