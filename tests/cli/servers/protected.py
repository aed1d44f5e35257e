"""The server of defective.py behind authorization with the defects that its arguments name.

`protected.py http PORT [DEFECT…]` serves at http://127.0.0.1:PORT/mcp.
"""

import sys

from defective_http import Endpoint, serve_http

WELL_KNOWN = "/.well-known/"
defects = sys.argv[3:]
forwarded = {name: getattr(Endpoint, f"do_{name}") for name in ("GET", "POST", "DELETE")}


def document(path, origin):
    """Returns the metadata at a path, or None."""
    if path in ("/.well-known/oauth-protected-resource/mcp", "/metadata") and "no-metadata" not in defects:
        resource = "http://127.0.0.1:1/mcp" if "other-resource" in defects else f"{origin}/mcp"
        servers = [] if "no-servers" in defects else [f"{origin}/tenant"]
        return {"resource": resource, "authorization_servers": servers}
    if path == "/.well-known/oauth-authorization-server/tenant" and "no-server-metadata" not in defects:
        methods = ["plain"] if "no-pkce" in defects else ["S256"]
        issuer = origin if "other-issuer" in defects else f"{origin}/tenant"
        return {"issuer": issuer, "code_challenge_methods_supported": methods}
    return None


def guarded(name):
    def handle(self):
        origin = f"http://127.0.0.1:{self.server.server_port}"
        body = int(self.headers.get("Content-Length") or 0)
        if name == "GET" and (WELL_KNOWN in self.path or self.path == "/metadata"):
            found = document(self.path, origin)
            return self.reply(404) if found is None else self.reply(200, found)
        token = self.headers.get("Authorization")
        if token == "Bearer secret-token" or (token and "any-token" in defects):
            return forwarded[name](self)
        self.rfile.read(body)
        challenge = "Bearer"
        if "no-parameter" not in defects:
            challenge = f'Bearer resource_metadata="{origin}/metadata"'
        headers = {} if "no-challenge" in defects else {"WWW_Authenticate": challenge}
        return self.reply(401, b"", **headers)

    return handle


for each in forwarded:
    setattr(Endpoint, f"do_{each}", guarded(each))
serve_http(int(sys.argv[2]), [])
