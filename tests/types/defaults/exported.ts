// With the defaults of TypeScript 7, which knows no types of Node unless a package asks for them. What a program exports has
// types that a declaration file can name.
import { apiKeys } from "gudgeon/auth";
import { Client, ClientGroup, Server } from "gudgeon";
import { connect } from "gudgeon/testing";
import { AuthorizationServer } from "gudgeon/testing/auth";

export const app = new Server("exported", { auth: apiKeys({ "a-key-of-32-bytes-for-the-tests!": "ada" }) });
export const GET = app.fetch;
export const { fetch, node } = app;
export const handlers = { POST: app.fetch, listener: app.node };
export const client = (): Promise<Client> => connect(app);
export const subscription = (given: Client) => given.subscribe({ tools: true });
export const call = (given: ClientGroup) => given.callTool("a_b", {}, { timeoutMs: 5 });
export const signIn = AuthorizationServer;
