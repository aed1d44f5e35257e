"""Gudgeon over HTTP with access tokens: ours_auth.py ISSUER AUDIENCE KEY_SET, or without: ours_auth.py."""

import json
import sys

from gudgeon import Server
from gudgeon.auth import Jwt

auth = None
if len(sys.argv) > 1:
    issuer, audience, keys = sys.argv[1:]
    auth = Jwt(issuer, audience=audience, keys=json.loads(keys))
app = Server("bench", **({} if auth is None else {"auth": auth}))


@app.tool
def echo(text: str) -> str:
    return text


app.run("http://127.0.0.1:0/mcp")
