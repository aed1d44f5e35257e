/** Serves the fixture server in TypeScript: over stdio, by its own HTTP server, or mounted in one of the host's. */
import { createServer, type Server as HttpServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createAdaptorServer } from "@hono/node-server";
import type { HttpOptions, Server } from "gudgeon";
import { Hono } from "hono";

const GRACE = 10_000; // milliseconds, for what is in flight at the end
const LAST_BYTES = 500; // milliseconds, for answers that are on their way
const TIMES = ["header_timeout", "idle_timeout", "body_timeout", "session_idle", "keep_alive", "shutdown_grace", "drain_delay"];

export interface Given {
  stdio?: boolean | undefined;
  http?: string | undefined;
  mount?: string | undefined;
}

export async function serve(app: Server, { stdio, http, mount }: Given): Promise<void> {
  if (stdio === true && http === undefined && mount === undefined) return app.run();
  if (stdio === true || http === undefined) throw new Error("give either --stdio, or --http HOST:PORT and, if you like, --mount fetch|node");
  if (mount === undefined) return app.run(`http://${http}/mcp`);
  if (mount === "node") return serveMounted(app, createServer(app.node), http);
  if (mount !== "fetch") throw new Error(`--mount ${mount}: this server mounts as fetch or node`);
  const hono = new Hono().all("*", (context) => app.fetch(context.req.raw));
  return serveMounted(app, createAdaptorServer({ fetch: hono.fetch }) as HttpServer, http);
}

async function serveMounted(app: Server, server: HttpServer, address: string): Promise<void> {
  const host = address.slice(0, address.lastIndexOf(":"));
  const port = Number(address.slice(host.length + 1));
  await new Promise<void>((listening) => server.listen(port, host.replace(/[[\]]/g, ""), listening));
  onSignal(async () => {
    server.close();
    await app.close();
    server.closeIdleConnections();
    // A connection without a request counts as busy.
    setTimeout(() => server.closeAllConnections(), LAST_BYTES);
  });
  announce(`http://${host}:${(server.address() as AddressInfo).port}/mcp`);
}

/** For the server's own HTTP and for its mounts, from JSON with their Python names and times in seconds. */
export function httpOptions(given = "{}"): HttpOptions {
  const named = Object.entries(JSON.parse(given) as Record<string, unknown>).map(([name, value]) => {
    const ours = name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
    if (TIMES.includes(name)) return [`${ours}Ms`, Number(value) * 1000];
    return name === "tls" ? [ours, { cert: (value as string[])[0], key: (value as string[])[1] }] : [ours, value];
  });
  return { legacySse: true, shutdownGraceMs: GRACE, ...(Object.fromEntries(named) as HttpOptions) };
}

// A program that reads this may stop the server at once, so it comes last.
function announce(url: string): void {
  console.error(url);
}

function onSignal(stop: () => Promise<void>): void {
  for (const name of ["SIGTERM", "SIGINT"] as const) process.once(name, () => void stop());
}
