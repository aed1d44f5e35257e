/** Gudgeon's client: ours.mjs URL legacy|modern IN_FLIGHT SECONDS [BYTES]. */
import { Client } from "gudgeon";

import { commandLine, keepCalling } from "./common.mjs";

const { url, era, inFlight, seconds, args } = commandLine();
const client = await Client.connect(url, { revision: era === "legacy" ? "2025-11-25" : "2026-07-28" });
await keepCalling(() => client.callTool("echo", args), inFlight, seconds);
await client.close();
