/** Loads the native half. CommonJS in both builds, so that one process holds it once. */
import type * as Addon from "../native";

let addon: typeof Addon | undefined;

export function loadAddon(): typeof Addon {
  addon ??= load();
  return addon;
}

function load(): typeof Addon {
  const given = process.env["GUDGEON_NATIVE"];
  try {
    return (given ? require(given) : require("../gudgeon.node")) as typeof Addon;
  } catch (error) {
    const where = given ? `GUDGEON_NATIVE names ${given}` : "dist/gudgeon.node belongs into the package";
    throw new Error(
      `gudgeon's native half for ${process.platform}-${process.arch} can't be loaded (${where}). ` +
        "In a checkout run `npm run build:native`; in an installed package remove node_modules and the lock file's entry, " +
        "and install again on this machine.",
      { cause: error },
    );
  }
}
