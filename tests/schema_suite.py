"""Unpacks the test suite of JSON Schema, from the source of Python's `jsonschema`, into target/json-schema-suite."""

import hashlib
import io
import sys
import tarfile
import urllib.request
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "target/json-schema-suite"
# On PyPI. Not by pip, which would install what building the package takes.
SOURCE = (
    "https://files.pythonhosted.org/packages/b3/fc/e067678238fa451312d4c62bf6e6cf5ec56375422aee02f9cb5f909b3047/"
    "jsonschema-4.26.0.tar.gz"
)
SHA256 = "0c26707e2efad8aa1bfc5b7ce170f3fccc2e4918ff85989ba9ffa9facb2be326"


def main() -> int:
    with urllib.request.urlopen(SOURCE, timeout=120) as reply:
        source = reply.read()
    if hashlib.sha256(source).hexdigest() != SHA256:
        print(f"{SOURCE} is not the file that was published", file=sys.stderr)
        return 1
    with tarfile.open(fileobj=io.BytesIO(source)) as archive:
        for member in archive:
            _, _, path = member.name.partition("/json/")
            if member.isfile() and path.startswith("tests/") and ".." not in path:
                target = FOLDER / path
                target.parent.mkdir(parents=True, exist_ok=True)
                content = archive.extractfile(member)
                assert content is not None
                target.write_bytes(content.read())
    return 0


if __name__ == "__main__":
    sys.exit(main())
