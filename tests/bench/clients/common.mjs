/** Keeps many calls of one client in flight for some seconds: common to the clients in TypeScript. */
import { performance } from "node:perf_hooks";

/** URL, era, calls in flight, seconds, and the length of the text in the arguments. */
export function commandLine() {
  const [url, era, inFlight, seconds, bytes] = process.argv.slice(2);
  const text = bytes ? "x".repeat(Number(bytes)) : "hello, world 16!";
  return { url, era, inFlight: Number(inFlight), seconds: Number(seconds), args: { text } };
}

/** Awaits `call()` as often as the seconds allow, that many at once, after a second of practice; prints the rate. */
export async function keepCalling(call, inFlight, seconds) {
  const round = async (length) => {
    const begun = performance.now();
    const cpu = process.cpuUsage();
    const callUntil = async (until) => {
      let done = 0;
      for (; performance.now() < until; done++) await call();
      return done;
    };
    const rounds = Array.from({ length: inFlight }, () => callUntil(begun + length * 1000));
    const done = (await Promise.all(rounds)).reduce((sum, one) => sum + one);
    const { user, system } = process.cpuUsage(cpu);
    return { calls_per_second: (done / (performance.now() - begun)) * 1000, cpu_us: (user + system) / done };
  };
  await round(1);
  console.log(JSON.stringify(await round(seconds)));
}
