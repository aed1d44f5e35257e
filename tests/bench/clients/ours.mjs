/** Gudgeon's client: ours.mjs URL legacy|modern IN_FLIGHT SECONDS. */
import { Client } from "gudgeon";

import { ARGUMENTS, commandLine, keepCalling } from "./common.mjs";

const { url, era, inFlight, seconds } = commandLine();
const client = await Client.connect(url, { revision: era === "legacy" ? "2025-11-25" : "2026-07-28" });
await keepCalling(() => client.callTool("echo", ARGUMENTS), inFlight, seconds);
await client.close();
