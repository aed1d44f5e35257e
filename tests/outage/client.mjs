/** Calls a server that is killed again and again, as client.py does. */
import { Client, McpError } from "gudgeon";

const AT_ONCE = 16;
const WARM = 1_000; // calls before memory is measured for the first time

const [, , url, revision, given] = process.argv;
const calls = Number(given);
const report = { reads: 0, counted: [], failed: {}, unexpected: [], memory: [] };

async function call(client, number) {
  const isRead = number % 2 === 0;
  let result;
  try {
    result = await client.callTool(isRead ? "read" : "count", { number });
  } catch (error) {
    if (isRead || !(error instanceof McpError)) report.unexpected.push(`call ${number}: ${error}`);
    report.failed[error.name] = (report.failed[error.name] ?? 0) + 1;
    return;
  }
  if (result.data !== number) report.unexpected.push(`call ${number} returned ${result.data}`);
  else if (isRead) report.reads += 1;
  else report.counted.push(number);
}

let next = 0;

async function work(client) {
  while (next < calls) {
    const number = next++;
    await call(client, number);
    if (number % 100 === 0) console.log(number);
    if (number === WARM || number === calls - 1) report.memory.push(process.memoryUsage.rss());
  }
}

const client = await Client.connect(url, { revision, timeoutMs: 20_000 });
await client.listTools();
await Promise.all(Array.from({ length: AT_ONCE }, () => work(client)));
await client.close();
console.log(JSON.stringify(report));
