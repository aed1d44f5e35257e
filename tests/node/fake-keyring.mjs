// The package @napi-rs/keyring in memory, in place of the real one, which needs the system's keyring.
import { register } from "node:module";

/** The state of the fake: its entries by service and name, and the error that each call throws. */
export const system = { entries: new Map(), fails: undefined, hasKeyring: true };
globalThis[Symbol.for("fakeKeyring")] = system;

// Stores as many characters for an entry as Windows does: 2,560 bytes, UTF-16.
const FAKE = `
const system = globalThis[Symbol.for("fakeKeyring")];
export class AsyncEntry {
  constructor(service, name, { linux: { store } }) {
    if (!system.hasKeyring || store !== "secret-service") throw new Error("no Secret Service");
    this.at = JSON.stringify([service, name]);
  }
  async getPassword() {
    this.check();
    return system.entries.get(this.at) ?? null;
  }
  async setPassword(text) {
    this.check();
    if (text.length > 1280) throw new Error("too long");
    system.entries.set(this.at, text);
  }
  async deletePassword() {
    this.check();
    return system.entries.delete(this.at);
  }
  check() {
    if (system.fails) throw system.fails;
  }
}
`;

/** Makes the import of the package fail, or import the fake. */
export function provide(isInstalled) {
  const answer = isInstalled
    ? `{ url: ${JSON.stringify(dataUrl(FAKE))}, shortCircuit: true }`
    : `(() => { throw new Error("Cannot find package") })()`;
  register(dataUrl(`export const resolve = async (name, context, next) => (name === "@napi-rs/keyring" ? ${answer} : next(name, context));`));
}

function dataUrl(code) {
  return `data:text/javascript,${encodeURIComponent(code)}`;
}
