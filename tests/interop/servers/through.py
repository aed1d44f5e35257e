"""A Gudgeon server with one upstream server, over stdio or at a URL: `through.py [URL] -- COMMAND…`."""

import sys

from gudgeon import Server, Upstream

at = sys.argv.index("--")
app = Server("interop")
app.mount("up", Upstream(sys.argv[at + 1 :]))
app.run(*sys.argv[1:at])
