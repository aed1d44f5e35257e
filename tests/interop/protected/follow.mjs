/** The user of a test: agrees in the authorization server's page without a browser. */

/** Returns the URL to which the authorization server redirects; it may redirect to itself before. */
export async function follow(page) {
  const { origin } = new URL(page);
  let url = String(page);
  do {
    const answer = await fetch(url, { redirect: "manual" });
    const location = answer.headers.get("location");
    if (location === null) throw new Error(`${url} answers ${answer.status} and does not redirect`);
    url = location;
  } while (new URL(url).origin === origin);
  return url;
}
