/** The loop of a client program in JavaScript. */
import { createInterface } from "node:readline";

/** Calls `perform(job)` for each job of the standard input. */
export async function performAll(perform) {
  for await (const line of createInterface({ input: process.stdin })) {
    let done = true;
    try {
      await perform(JSON.parse(line));
    } catch (error) {
      console.error(error);
      done = false;
    }
    printLine({ done });
  }
}

export const printLine = (line) => console.log(JSON.stringify(line));
