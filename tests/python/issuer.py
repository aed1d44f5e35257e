"""An authorization server for tests: metadata, a key set, and tokens signed with OpenSSL."""

import base64
import json
import subprocess
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from asgi_host import hosted


@cache
def key_file() -> Path:
    """Returns the file of an RSA key."""
    path = Path(mkdtemp()) / "key.pem"
    subprocess.run(["openssl", "genrsa", "-out", path, "2048"], check=True, capture_output=True)
    return path


def key_set() -> dict[str, Any]:
    """Returns the public key as a JSON Web Key Set."""
    command = ["openssl", "rsa", "-in", key_file(), "-noout", "-modulus"]
    modulus = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip().partition("=")[2]
    return {"keys": [{"kty": "RSA", "kid": "one", "e": "AQAB", "n": text(bytes.fromhex(modulus))}]}


def token(issuer: str, audience: str, **changes: Any) -> str:
    """Returns an access token; `changes` are further claims."""
    now = int(time.time())
    claims = {"iss": issuer, "aud": audience, "sub": "ada", "iat": now, "exp": now + 300, **changes}
    header = {"alg": "RS256", "typ": "at+jwt", "kid": "one"}
    signed = ".".join(text(json.dumps(it).encode()) for it in (header, claims))
    command = ["openssl", "dgst", "-sha256", "-sign", key_file()]
    signature = subprocess.run(command, input=signed.encode(), check=True, capture_output=True).stdout
    return f"{signed}.{text(signature)}"


def text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


@asynccontextmanager
async def issuing() -> AsyncIterator[str]:
    """Serves the metadata and the key set; yields the URL of the issuer."""
    place = ""

    async def serve(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        documents = {
            "/.well-known/oauth-authorization-server": {"issuer": place, "jwks_uri": f"{place}/keys"},
            "/keys": key_set(),
        }
        found = documents.get(scope["path"])
        await send({"type": "http.response.start", "status": 200 if found else 404, "headers": []})
        await send({"type": "http.response.body", "body": json.dumps(found).encode()})

    async with hosted(serve) as url:
        place = url
        yield url
