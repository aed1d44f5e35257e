import type { IncomingMessage, ServerResponse } from "node:http";

import type { Principal } from "./principal.js";

/** The context of a host whose handlers get no plain `Request`: Hono's has it in `req.raw`, SvelteKit's and Astro's in `request`. */
export type FetchContext = { readonly req: { readonly raw: Request } } | { readonly request: Request };

/** A request of node:http or Express, with the caller if the host authenticated it; or Fastify's. */
export type NodeRequest = (IncomingMessage & { principal?: Principal | undefined }) | FastifyRequest;

/** The members of a Fastify request that are used. */
export interface FastifyRequest {
  readonly raw: IncomingMessage;
  readonly body?: unknown;
  readonly principal?: Principal | undefined;
}

/** The members of a Fastify reply that are used. */
export interface FastifyReply {
  readonly raw: ServerResponse;
  hijack(): unknown;
}
