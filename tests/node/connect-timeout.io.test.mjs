/** A connect that fails says after how long, and leaves no process. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { CallTimeout, Client, ConnectFailed } from "gudgeon";

import { withEnoughTime } from "./enough-time.mjs";
import { eventually } from "./http.mjs";

/** Writes the ids of this process and of a child of its own into a file, ignores SIGTERM, and answers nothing. */
const DEAF = 'trap "" TERM; sleep 600 & echo $$ $! > "$1"; wait';

function isAlive(pid) {
  try {
    // A process that its parent has not waited for yet counts as gone.
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}

for (const revision of ["auto", "2025-11-25", "2026-07-28"]) {
  test(`a server that never answers fails within the timeout, with revision ${revision}`, { skip: process.platform !== "linux" && "needs /proc" }, () =>
    withEnoughTime(async (timeoutMs) => {
      const folder = mkdtempSync(join(tmpdir(), "gudgeon-"));
      const pids = join(folder, "pids");
      const target = { command: "sh", args: ["-c", DEAF, "sh", pids] };
      const error = await Client.connect(target, { revision, timeoutMs }).then(assert.fail, (error) => error);
      assert.ok(error instanceof CallTimeout, String(error));
      assert.match(error.message, new RegExp(`no answer to \\S.* in (${timeoutMs / 1_000} s|${timeoutMs} ms)`));
      const left = readFileSync(pids, "utf8").split(" ").map(Number);
      assert.equal(left.length, 2);
      // A process that was killed ends when the system gets to it.
      assert.ok(await eventually(() => !left.some(isAlive)));
      rmSync(folder, { recursive: true });
    }),
  );
}

test("errors show milliseconds as the caller wrote them, or seconds", async () => {
  const target = { command: "sleep", args: ["600"] };
  await assert.rejects(Client.connect(target, { timeoutMs: 250 }), (error) => error instanceof CallTimeout && /in (0\.25 s|250 ms)/.test(error.message));
});

test("the error of a command that exits at once has its status", async () => {
  await assert.rejects(
    Client.connect({ command: process.execPath, args: ["-e", "process.exit(3)"] }, { timeoutMs: 60_000 }),
    (error) => error instanceof ConnectFailed && error.exitStatus === 3,
  );
});
