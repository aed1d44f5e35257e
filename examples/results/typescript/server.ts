/** A weather station: structured results, images, audio and files, pages of lists, caching. */
import { setTimeout as sleep } from "node:timers/promises";
import { audio, file, image, NotSupported, resourceLink, Server, ToolError, ToolResult } from "gudgeon";
import { z } from "zod";

const FORECAST = new URL("../../../results/forecast.txt", import.meta.url);
const PIXEL = Buffer.from(
  "89504e470d0a1a0a0000000d49484452000000010000000108000000003a7e9b55" +
    "0000000a49444154789c636000000002000148afa4710000000049454e44ae426082",
  "hex",
);
const CELSIUS: Record<string, number> = { coast: 14.5, hill: 9, town: 17 };

const app = new Server("weather-station", { pageSize: 3 });

const Reading = z.object({ station: z.string(), celsius: z.number().min(-90).max(60) });
const Station = z.object({ station: z.string() });

const MEASURE = "Measure at one station. The client gets the numbers, as `output` says, and a text.";
app.tool("measure", { description: MEASURE, input: Station, output: Reading }, ({ station }) => {
  const celsius = CELSIUS[station];
  const known = Object.keys(CELSIUS).join(", ");
  if (celsius === undefined) throw new ToolError(`There is no station '${station}': take ${known}.`);
  return { station, celsius };
});

const MEASURE_ALL = "Measure everywhere. Where a revision wants an object, the list is wrapped; a client unwraps it.";
app.tool("measure_all", { description: MEASURE_ALL, output: z.array(Reading) }, () =>
  Object.entries(CELSIUS).map(([station, celsius]) => ({ station, celsius })),
);

const SUNSPOT = "A broken thermometer: what it gives is not what was promised.";
app.tool("sunspot", { description: SUNSPOT, output: Reading }, () => ({ station: "sun", celsius: 5500 }));

app.tool("chart", { description: "A picture of the day, with a caption." }, () => ["Today:", image(PIXEL, "png")]);

app.tool("siren", { description: "The sound of the storm warning." }, () =>
  audio(Buffer.from("RIFF\x24\0\0\0WAVE"), "wav"),
);

const BULLETIN = "The forecast as a file, and where the stations' own pages are.";
app.tool("bulletin", { description: BULLETIN }, async () => [
  await file(FORECAST),
  resourceLink({ uri: "weather://stations/hill", name: "hill", mimeType: "text/plain" }),
]);

const ALMANAC = "Everything said by hand: what people read, what programs read, and what hosts keep to themselves.";
app.tool("almanac", { description: ALMANAC }, () => {
  const rest = { structuredContent: { mean: 13.5 }, meta: { "weather.example/volume": 12 } };
  return new ToolResult(["A mild year."], rest);
});

let visits = 0;

// Clients may cache this for a minute, and the server does: the handler runs once a minute for each station.
const PAGE = { mimeType: "text/plain", ttlMs: 60_000, cacheScope: "public", cacheMs: 60_000 } as const;
app.resource("weather://stations/{name}", PAGE, ({ name }) => {
  visits += 1;
  return `${name}: ${CELSIUS[name]} degrees, visit ${visits}`;
});

const watching = new Set<string>();

// A resource that is slow to read. If the client cancels, `ctx.signal` is aborted, and the handler cleans up.
app.resource("weather://storms/{name}", {}, async ({ name }, ctx) => {
  watching.add(name);
  try {
    await sleep(86_400_000, undefined, { signal: ctx.signal });
  } finally {
    watching.delete(name);
  }
  return `Hold your hat at ${name}!`;
});

app.resource("weather://storms", {}, () => [...watching]);

const WATCH = "Remember a station for as long as the session lasts, where there are sessions.";
app.tool("watch", { description: WATCH, input: Station }, ({ station }, ctx) => {
  try {
    const before = ctx.session.get("station") ?? "nothing";
    ctx.session.set("station", station);
    return `${before} -> ${station}`;
  } catch (error) {
    if (error instanceof NotSupported) throw new ToolError(`Name the station each time: ${error.hint}`);
    throw error;
  }
});

await app.run(process.argv[2]);
