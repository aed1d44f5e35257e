/** Types of servers; each `@ts-expect-error` line must fail. */
import { serve } from "@hono/node-server";
import { Hono } from "hono";
import { Server } from "gudgeon";
import type { AnyServer, Context, Principal } from "gudgeon";
import { apiKeys, InsufficientScope, introspection, InvalidToken, jwt, type RequestInfo } from "gudgeon/auth";

import { same } from "./same.js";

// The schema in the call: its literals are kept.
new Server("calculator").tool(
  "add",
  { input: { type: "object", properties: { a: { type: "number" }, b: { type: "number" } }, required: ["a", "b"] } },
  ({ a, b }) => {
    same<typeof a, number>(true);
    return a + b;
  },
);

// The schema in a constant.
const input = { type: "object", properties: { a: { type: "number" }, b: { type: "number" } }, required: ["a", "b"] } as const;
new Server("calculator").tool("add", { input }, ({ a, b }) => a + b);

// Without `as const` TypeScript keeps the names and forgets the types.
const wide = { type: "object", properties: { a: { type: "number" } }, required: ["a"] };
new Server("calculator").tool("add", { input: wide }, ({ a }) => {
  same<typeof a, unknown>(true);
  return 1;
});

// Every kind of server fits where one is wanted.
const start = (server: Server): Promise<void> => server.run();
const any = (server: AnyServer): string => server.name;
const lasting = new Server("a", { lifespan: async () => ({ value: new Map<string, number>() }) });
void start(lasting);
any(lasting);
lasting.tool("b", {}, (_, ctx) => {
  same<typeof ctx.lifespan, Map<string, number>>(true);
  return "";
});
// But only its own handlers know what the lifespan gives.
new Server("a").tool("b", {}, (_, ctx) => {
  // @ts-expect-error: it has none
  ctx.lifespan.get("a");
});
// @ts-expect-error: a handler that wants another lifespan
new Server("a").tool("b", {}, (_, ctx: Context<Map<string, number>>) => String(ctx.lifespan.size));

// Hosts take fetch as it is, whatever they hand over beside the request.
serve({ fetch: lasting.fetch, port: 0 });
new Hono().all("/mcp", (context) => lasting.fetch(context.req.raw)).mount("/sub", lasting.fetch);
const withEnvironment: (request: Request, env: { readonly KEY: string }, ctx: object) => Promise<Response> = lasting.fetch;
void withEnvironment;
void lasting.fetch(new Request("http://localhost/mcp"), { principal: { subject: "ada", scopes: new Set(), claims: {} } });
void lasting.fetch(new Request("http://localhost/mcp"), { principal: undefined });
// @ts-expect-error: no principal
void lasting.fetch(new Request("http://localhost/mcp"), { principal: "ada" });

// Next's route handlers: `export const POST = app.fetch`. Until 15.4 it compared the parameters with its own ones by
// themselves, where only `unknown` passes; since then it compares the whole function.
type SecondParameter<F> = F extends (...args: [never, infer Second]) => unknown ? Second : never;
same<unknown extends SecondParameter<typeof lasting.fetch> ? true : false, true>(true);
const route: (request: Request & { nextUrl: URL }, context: { params: Promise<Record<string, never>> }) => Response | Promise<Response> =
  lasting.fetch;
void route;

// Names of other SDKs.
new Server("a").tool("b", { inputSchema: { type: "object", properties: { a: { type: "number" } }, required: ["a"] }, annotations: { readOnlyHint: true } }, ({ a }) => {
  same<typeof a, number>(true);
  return a;
});
new Server("a").tool("b", { unknownArguments: "ignore", annotations: { readOnly: true } }, () => 1).mount(lasting, "c").mount("d", lasting);
// @ts-expect-error: no such value
new Server("a").tool("b", { unknownArguments: "drop" }, () => 1);

// Callers are authenticated.
const ada: Principal = { subject: "ada", scopes: new Set(), claims: {} };
new Server("a", { auth: "https://login.example.com" });
new Server("a", { auth: [jwt({ issuer: "https://login.example.com", dpop: "required" }), apiKeys({ a: ada, b: "bob" }, { header: "X-Api-Key" })] });
new Server("a", { auth: introspection({ url: "https://a.example", clientId: "a", clientSecret: "b" }), scopeImplies: { write: ["read"] } });
new Server("a", { auth: async (token, request) => (request.headers.has("a") && token === "t" ? ada : undefined) });
new Server("a", {
  auth: (token: string, { client }: RequestInfo) => {
    if (client === undefined) throw new InsufficientScope(["a"]);
    if (token === "") throw new InvalidToken();
    return ada;
  },
});
new Server("a").tool("b", { scopes: ["admin"] }, (_, { principal }) => principal?.subject ?? "nobody");
// @ts-expect-error: it must be a verifier or a function
new Server("a", { auth: {} });
// @ts-expect-error: a function returns a principal
new Server("a", { auth: () => "ada" });
// @ts-expect-error: no such option
jwt({ issuer: "https://login.example.com", secret: "a" });
// @ts-expect-error: the secret is required
introspection({ url: "https://a.example", clientId: "a" });
new Server("a", { store: "memory" });
new Server("a", {
  store: {
    get: async (key) => [new Uint8Array(key.length), 1],
    put: (_, value, { ttlMs, expect }) => (expect === "absent" && ttlMs > 0 ? value.length : "conflict"),
    take: () => undefined,
  },
});
// @ts-expect-error: a method is missing
new Server("a", { store: { get: () => undefined, take: () => undefined } });
// @ts-expect-error: a list of strings
new Server("a").tool("b", { scopes: "admin" }, () => 1);
