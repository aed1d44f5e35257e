/** An authorization server for tests: metadata, a key set, and signed tokens. */
import { generateKeyPairSync, sign } from "node:crypto";
import { createServer } from "node:http";

const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
const encoded = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");

export const KEY_SET = { keys: [{ ...publicKey.export({ format: "jwk" }), kid: "one" }] };

/** An access token; `changes` are further claims. */
export function token(issuer, audience, changes = {}) {
  const now = Math.floor(Date.now() / 1000);
  const claims = { iss: issuer, aud: audience, sub: "ada", iat: now, exp: now + 300, ...changes };
  const signed = `${encoded({ alg: "ES256", typ: "at+jwt", kid: "one" })}.${encoded(claims)}`;
  return `${signed}.${sign("sha256", Buffer.from(signed), { key: privateKey, dsaEncoding: "ieee-p1363" }).toString("base64url")}`;
}

/** Serves the metadata and the key set while the test runs; `answer` returns further documents by path. */
export async function withIssuer(test, answer = () => undefined) {
  let issuer = "";
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    const documents = {
      "/.well-known/oauth-authorization-server": { issuer, jwks_uri: `${issuer}/keys` },
      "/keys": KEY_SET,
    };
    const found = documents[request.url] ?? answer(request.url, body);
    response.writeHead(found ? 200 : 404, { "content-type": "application/json" }).end(JSON.stringify(found ?? {}));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  issuer = `http://127.0.0.1:${server.address().port}`;
  try {
    return await test(issuer);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}
