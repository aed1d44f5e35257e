import type { ServerCore } from "../server/core.js";
import { Mounted } from "./mounted.js";

/** The endpoint of a server for the requests of hosts, opened at the first request. */
export class Hosting {
  #mounted: Mounted | undefined;

  constructor(private readonly core: ServerCore) {}

  mounted(): Mounted {
    if (this.#mounted) return this.#mounted;
    const mounted = (this.#mounted = new Mounted(this.core));
    // An endpoint that failed to open is opened again at the next request.
    mounted.ready.catch(() => {
      if (this.#mounted === mounted) this.#mounted = undefined;
      void mounted.close();
    });
    return mounted;
  }

  async close(): Promise<void> {
    await this.#mounted?.close();
  }
}
