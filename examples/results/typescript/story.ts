/** A client that reads all kinds of results. */
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { Cancelled, Client, ProtocolError, type Revision, type Target, ToolError } from "gudgeon";
import { z } from "zod";

const Reading = z.object({ station: z.string(), celsius: z.number() });

export async function story(target: Target, revision: Revision): Promise<void> {
  await using client = await Client.connect(target, { revision });

  // Structured output: as JSON, or validated and typed by a schema of the caller.
  const plain = await client.callTool("measure", { station: "hill" });
  assert.deepEqual(plain.data, { station: "hill", celsius: 9 });
  assert.deepEqual(plain.structuredContent, plain.data);
  const typed = await client.callTool("measure", { station: "hill" }, { output: Reading });
  assert.equal(typed.data.celsius.toFixed(1), "9.0");
  const everywhere = await client.callTool("measure_all", {}, { output: z.array(Reading) });
  assert.deepEqual(everywhere.data.map((reading) => reading.station), ["coast", "hill", "town"]);

  await assert.rejects(client.callTool("measure", { station: "moon" }), (error) => {
    return error instanceof ToolError && error.text === "There is no station 'moon': take coast, hill, town.";
  });
  const broken = await client.callTool("sunspot", {}, { throwOnError: false });
  assert(broken.isError && !broken.text.includes("5500"), "what was wrong is the server's to know, by reference");

  // Other kinds of content.
  const [caption, picture] = (await client.callTool("chart")).content;
  assert(caption?.type === "text" && caption.text === "Today:");
  assert(picture?.type === "image" && picture.mimeType === "image/png");
  assert.equal(Buffer.from(picture.data).toString("latin1", 1, 4), "PNG");
  const [sound] = (await client.callTool("siren")).content;
  assert(sound?.type === "audio" && sound.mimeType === "audio/wav");
  const [forecast, link] = (await client.callTool("bulletin")).content;
  assert(forecast?.type === "resource" && forecast.resource.uri.endsWith("forecast.txt"));
  assert.equal(forecast.resource.text, "Rain in the morning, sun after lunch.\n");
  assert.equal(forecast.resource.mimeType, "text/plain");
  assert(link?.type === "resource_link");
  const almanac = await client.callTool("almanac");
  assert.deepEqual([almanac.text, almanac.data], ["A mild year.", { mean: 13.5 }]);
  assert.equal(almanac.meta["weather.example/volume"], 12);

  // A link to a resource. The server caches it, so the second read does not call the handler.
  const first = (await client.readResource(link.uri)).text;
  assert.equal(first, "hill: 9 degrees, visit 1");
  const again = await client.readResource("weather://stations/{name}", { variables: { name: "hill" } });
  assert.equal(again.text, first);
  assert.match((await client.readResource("weather://stations/town")).text, /visit 2$/);
  // Cache hints are sent in the revisions that have them.
  const said = (await client.request("resources/read", { uri: link.uri })) as Record<string, unknown>;
  const modern = revision === "2026-07-28";
  assert.deepEqual([said["ttlMs"], said["cacheScope"]], modern ? [60_000, "public"] : [undefined, undefined]);

  // A cancelled read ends its handler, which cleans up.
  const waitingForStorms = async (): Promise<string> => (await client.readResource("weather://storms")).text;
  const leaving = new AbortController();
  const given = assert.rejects(client.readResource("weather://storms/hill", { signal: leaving.signal }), Cancelled);
  while ((await waitingForStorms()) !== '["hill"]') await sleep(10);
  leaving.abort();
  await given;
  while ((await waitingForStorms()) !== "[]") await sleep(10);

  // Lists have pages of three; `listTools` fetches them all, `listToolsPage` one.
  const sizes: number[] = [];
  const names: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await client.listToolsPage(cursor);
    sizes.push(page.items.length);
    names.push(...page.items.map((tool) => tool.name));
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  assert.deepEqual(sizes, [3, 3, 2]);
  assert.deepEqual(names, (await client.listTools()).map((tool) => tool.name));
  await assert.rejects(client.listToolsPage("page two, please"), (error) => {
    return error instanceof ProtocolError && error.code === -32602; // only the server makes cursors
  });

  // Session values; in the revision without sessions the error says what to use instead.
  if (modern) {
    const refused = await client.callTool("watch", { station: "hill" }, { throwOnError: false });
    assert(refused.isError && refused.text.includes("Name the station each time: give the client a handle"), refused.text);
  } else {
    assert.equal((await client.callTool("watch", { station: "hill" })).text, "nothing -> hill");
    assert.equal((await client.callTool("watch", { station: "town" })).text, "hill -> town");
  }
}
