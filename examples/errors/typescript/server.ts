/** Serves the bank. Its tools are in `bank.ts`, so that tests can import them without a process. */
import { app } from "./bank.js";

await app.run(process.argv[2]);
