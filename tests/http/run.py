"""Runs the HTTP tests, several kinds of server concurrently, because they mostly wait. Other arguments go to pytest.

python3 tests/http/run.py [--at-once 3] [WORD…]
"""

import argparse
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

from servers import KINDS, ROOT


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--at-once", type=int, default=3)
    options, words = parser.parse_known_args()
    at_once = ["--numprocesses", "2", "--dist", "worksteal"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *at_once, "tests/http", *words]

    def run(kind):
        with tempfile.TemporaryFile("w+") as output:
            status = subprocess.run(
                [*command, "--servers", kind], check=False, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT
            ).returncode
            output.seek(0)
            return kind, status, output.read()

    failed = False
    with ThreadPoolExecutor(options.at_once) as pool:
        for kind, status, said in pool.map(run, KINDS):
            print(f"── {kind}\n{said}", flush=True)
            failed |= status != 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
