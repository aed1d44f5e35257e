/** The user of a test: agrees in the pages of authorization servers without a browser. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

/** Returns the URL with which the browser returns to the client. Servers may redirect to each other before. */
export async function follow(page) {
  const program = fileURLToPath(new URL("follow.py", import.meta.url));
  const { stdout } = await promisify(execFile)("python3", [program, String(page)]);
  return stdout.trim();
}
