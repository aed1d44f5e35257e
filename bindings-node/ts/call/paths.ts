import { ToolError } from "../model/errors.js";
import { checked, native } from "../native.js";

/**
 * Returns the real path of a file in the folder `root`, for a path relative to it that a client gave.
 *
 * Call it before a handler opens, writes or lists what an argument names. `path` uses `/` on every system. It need not
 * exist, so a handler can create the file. The check is made once: in a folder where others replace directories by
 * symbolic links at the same time, it does not protect.
 *
 * Throws `ToolError` if the path is absolute, names a drive, contains `..`, a backslash or NUL, or leads out of the folder
 * through a symbolic link, and `TypeError` if `root` is not a folder that can be read.
 *
 * @example
 * ```ts
 * import { relative } from "node:path";
 * import { resolveInside } from "gudgeon";
 *
 * console.log(relative(".", resolveInside(".", "notes/today.md"))); // notes/today.md
 * ```
 */
export function resolveInside(root: string, path: string): string {
  const [resolved, problem] = checked("resolveInside", () => native().NativePath.resolveInside(root, path));
  if (typeof resolved !== "string") throw new ToolError(problem ?? "");
  return resolved;
}
