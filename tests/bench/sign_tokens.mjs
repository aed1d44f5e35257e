// Prints a key set and different access tokens that its ES256 key has signed: sign_tokens.mjs ISSUER AUDIENCE COUNT.
import { generateKeyPairSync, sign } from "node:crypto";

const [issuer, audience, count] = process.argv.slice(2);
const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
const encode = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
const head = encode({ alg: "ES256", kid: "bench", typ: "at+jwt" });
const now = Math.floor(Date.now() / 1000);

function token(number) {
  const claims = { iss: issuer, aud: audience, sub: "ada", iat: now, exp: now + 3600, jti: String(number) };
  const signed = `${head}.${encode(claims)}`;
  const signature = sign("sha256", Buffer.from(signed), { key: privateKey, dsaEncoding: "ieee-p1363" });
  return `${signed}.${signature.toString("base64url")}`;
}

const keys = { keys: [{ ...publicKey.export({ format: "jwk" }), kid: "bench" }] };
process.stdout.write(JSON.stringify({ keys, tokens: Array.from({ length: Number(count) }, (_, at) => token(at)) }));
