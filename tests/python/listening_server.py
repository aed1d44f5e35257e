"""A server of 2026-07-28 whose subscriptions end as it is told: `listening_server.py <mode>`."""

import json
import os
import sys
import time

MODE = sys.argv[1]
ID = "io.modelcontextprotocol/subscriptionId"


def send(**frame):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **frame}) + "\n")
    sys.stdout.flush()


def complete(id, **result):
    send(id=id, result={"resultType": "complete", **result})


def tell(subscription, method, **params):
    send(method=f"notifications/{method}", params={"_meta": {ID: subscription}, **params})


def listen(id, wanted):
    if MODE == "mute":
        return
    if MODE == "keeps_less":
        wanted = {name: kept for name, kept in wanted.items() if name != "resourceSubscriptions"}
    tell(id, "subscriptions/acknowledged", notifications=wanted)
    for uri in wanted.get("resourceSubscriptions", []):
        tell(id, "resources/updated", uri=uri)
    if MODE == "ends":
        complete(id, _meta={ID: id})
    elif MODE == "cancels":
        send(method="notifications/cancelled", params={"requestId": id, "reason": "out of patience"})
    elif MODE == "crashes":
        os._exit(7)


def main():
    for line in sys.stdin:
        frame = json.loads(line)
        method, id, params = frame.get("method"), frame.get("id"), frame.get("params") or {}
        if method == "server/discover":
            capabilities = {"tools": {"listChanged": True}, "resources": {"subscribe": True}}
            complete(id, supportedVersions=["2026-07-28"], capabilities=capabilities, ttlMs=0, cacheScope="private")
        elif method == "subscriptions/listen":
            listen(id, params["notifications"])
        elif method == "tools/call" and params["name"] == "die":
            if (params.get("arguments") or {}).get("later"):
                time.sleep(1.2)
            os._exit(7)
        elif method == "tools/call":
            complete(id, content=[{"type": "text", "text": str(os.getpid())}])
        elif method == "tools/list":
            complete(id, tools=[], ttlMs=0, cacheScope="private")


main()
