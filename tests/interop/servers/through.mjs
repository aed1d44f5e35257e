/** A Gudgeon server with one upstream server, over stdio or at a URL: `through.mjs [URL] -- COMMAND…`. */
import { Server, upstream } from "gudgeon";

const at = process.argv.indexOf("--");
const [command, ...args] = process.argv.slice(at + 1);
const app = new Server("interop");
app.mount("up", upstream({ command, args }));
await app.run(...process.argv.slice(2, at));
