/** Calls a server that is killed again and again, as client.py does. */
import { Client, ClientGroup, McpError } from "gudgeon";

const AT_ONCE = 16;
const WARM = 1_000; // calls before memory is measured for the first time

const [, , given, revision, count] = process.argv;
const urls = given.split(",");
const calls = Number(count);
const report = { reads: 0, counted: [], failed: {}, lists: [], unexpected: [], memory: [] };

function tool(number) {
  const prefix = urls.length > 1 ? `s${Math.floor(number / 2) % urls.length}_` : "";
  return prefix + (number % 2 === 0 ? "read" : "count");
}

async function call(client, number) {
  const isRead = number % 2 === 0;
  let result;
  try {
    result = await client.callTool(tool(number), { number });
  } catch (error) {
    if (isRead || !(error instanceof McpError)) report.unexpected.push(`call ${number}: ${error}`);
    (report.failed[error.name] ??= []).push(number);
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
    if (number % 100 === 0) {
      console.log(number);
      if (urls.length > 1) report.lists.push((await client.listTools()).map(({ name }) => name));
    }
    if (number === WARM || number === calls - 1) report.memory.push(process.memoryUsage.rss());
  }
}

const targets = Object.fromEntries(urls.map((url, at) => [`s${at}`, url]));
const options = { revision, timeoutMs: 20_000 };
const client = await (urls.length > 1 ? ClientGroup.connect(targets, options) : Client.connect(urls[0], options));
await client.listTools();
await Promise.all(Array.from({ length: AT_ONCE }, () => work(client)));
await client.close();
console.log(JSON.stringify(report));
