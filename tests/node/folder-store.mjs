/** A store of tokens in a folder, which processes share. */
import { mkdirSync, readdirSync, readFileSync, renameSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

export class FolderStore {
  constructor(folder) {
    this.folder = folder;
  }

  get(key) {
    try {
      return readFileSync(this.#path(key));
    } catch {
      return undefined;
    }
  }

  set(key, value) {
    const path = this.#path(key);
    writeFileSync(`${path}.${process.pid}`, value);
    renameSync(`${path}.${process.pid}`, path);
  }

  delete(key) {
    rmSync(this.#path(key), { force: true });
  }

  async lock(key) {
    const path = `${this.#path(key)}.lock`;
    for (;;) {
      try {
        mkdirSync(path);
        return () => rmdirSync(path);
      } catch (error) {
        if (error.code !== "EEXIST") throw error;
        await sleep(10);
      }
    }
  }

  /** Has the access token end. */
  expire() {
    for (const name of readdirSync(this.folder)) {
      const record = JSON.parse(readFileSync(join(this.folder, name), "utf8"));
      if (!record.tokens) continue;
      Object.assign(record.tokens, { expires_at: 1, renew_at: 1 });
      writeFileSync(join(this.folder, name), JSON.stringify(record));
    }
  }

  #path(key) {
    return join(this.folder, Buffer.from(key).toString("base64url"));
  }
}
