"""Checks that all members of the workspace use the same features of a dependency, so that it is compiled once."""

import subprocess
import sys

TREE = ["cargo", "tree", "--edges", "normal,build", "--prefix", "none", "--format", "{p} {f}"]
PACKAGES = ("gudgeon-python", "gudgeon-node", "gudgeon-cli")
NO_PROGRAMS = (*PACKAGES, "bench-driver", "gudgeon-fuzz")


def without(*names):
    return ["--workspace", *(word for name in names for word in ("--exclude", name))]


# What the Makefile and the tests build with one command.
BUILT = {
    **{name: ["--package", name] for name in PACKAGES[:2]},
    "the packages": [word for name in PACKAGES for word in ("--package", name)],
    "the programs": without(*NO_PROGRAMS),
    "the tests": without("gudgeon-python", "bench-driver"),
    "the benchmarks": ["--package", "shared-features", "--package", "bench-driver", "--package", "hostile"],
    "the counted servers": ["--package", "shared-features", "--package", "bench-driver"],
}


def main():
    asked = {}
    for built, chosen in BUILT.items():
        lines = subprocess.run([*TREE, *chosen], check=True, capture_output=True, text=True).stdout.splitlines()
        for line in filter(None, lines):
            name, version, *rest = line.removesuffix(" (*)").split(" ")
            asked.setdefault(f"{name} {version}", {}).setdefault(built, set()).add(rest[-1] if rest else "")
    wrong = {name: how for name, how in asked.items() if len({frozenset(features) for features in how.values()}) > 1}
    for name, how in wrong.items():
        print(f"{name} is compiled more than once; add the missing features to features/Cargo.toml")
        for built, features in how.items():
            print(f"  for {built}: {' | '.join(sorted(features))}")
    return 1 if wrong or not asked else 0


if __name__ == "__main__":
    sys.exit(main())
