/** Serves the bank; what it offers stands in `bank.ts`, so that tests can have it without a process. */
import { app } from "./bank.js";

await app.run(process.argv[2]);
