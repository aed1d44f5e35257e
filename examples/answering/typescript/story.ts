/** A host that answers a server's questions: forms, sampling by a model, and roots that change. */
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { cancelled, Client, type ClientOptions, McpError, type Progress, type Revision, type Target } from "gudgeon";

/** Two processes of the museum, which continue each other's calls because they share a key. */
export const processes = [{ GUDGEON_STATE_KEYS: "the museum's secret which is long" }, { GUDGEON_STATE_KEYS: "the museum's secret which is long" }];

export async function story(first: Target, second: Target, revision: Revision): Promise<void> {
  let minutes: unknown = 30;
  const logs: unknown[] = [];
  const reports: Progress[] = [];
  let tellChanged = (kind: string): void => void kind;
  const changed = new Promise<string>((resolve) => (tellChanged = resolve));

  const able: ClientOptions = {
    onElicit(request) {
      assert.equal(request.mode, "form");
      return minutes; // a form with one field takes the bare value
    },
    onSample(request) {
      assert.deepEqual([request.models, request.maxTokens], [["fast"], 40]);
      return `The Vermeers. (${request.messages.at(-1)?.text})`;
    },
    roots: [{ uri: "file:///home/ada", name: "home" }],
  };

  {
    await using visitor = await Client.connect(first, {
      ...able,
      revision,
      onLog: ({ data }) => void logs.push(data),
      onProgress: (report) => void reports.push(report),
      onListChanged: (kind) => tellChanged(kind),
    });
    const plan = await visitor.callTool("plan_visit");
    assert.equal(plan.text, "The Vermeers. (What can one see in 30 minutes?) Saved in home.");

    // Roots change while the client is connected; the next question returns the new ones.
    visitor.setRoots([{ uri: "file:///media/stick", name: "stick" }]);
    assert.match((await visitor.callTool("plan_visit")).text, /Saved in stick\.$/);
    while (revision === "2025-11-25" && (await visitor.callTool("last_place")).text !== "file:///media/stick") await sleep(10);

    // Closing the form is an answer as well.
    minutes = cancelled;
    const failed = await visitor.callTool("plan_visit", {}, { throwOnError: false });
    assert(failed.isError && failed.text.includes("How many minutes do you have?"));

    await visitor.setLogLevel("info");
    assert.equal((await visitor.callTool("tour", { rooms: 3 })).text, "That was all.");
    const told = reports.map((report) => [report.progress, report.total, report.message]);
    assert.deepEqual(told, [[1, 3, "room 1"], [2, 3, "room 2"], [3, 3, "room 3"]]);
    assert.deepEqual(logs, [1, 2, 3].map((room) => ({ message: "entered", room })));

    // In sessions the server reports changes unasked; from 2026-07-28 on, to subscribers only.
    await using changes = await visitor.subscribe({ tools: true }).open();
    await visitor.callTool("open_room", { name: "vermeer" });
    assert.deepEqual((await changes.next()).value, { kind: "tools" });
    assert.equal(await changed, "tools");
    assert.equal((await visitor.callTool("look_at_vermeer")).text, "You see vermeer.");
  }

  // A client that can't answer is not asked.
  {
    await using mute = await Client.connect(first, { revision });
    await assert.rejects(mute.callTool("plan_visit"), (error) => error instanceof McpError && error.message.includes("elicitation"));
  }

  // One round at a time. The answers may be sent by another program, days later, to another process.
  if (revision === "2026-07-28") {
    await using asker = await Client.connect(first, { ...able, revision });
    await using answerer = await Client.connect(second, { ...able, revision });
    const round1 = await asker.callToolRound("plan_visit", {});
    assert("questions" in round1);
    assert.deepEqual(Object.keys(round1.questions), ["minutes"]);
    let answers: Record<string, unknown> = { minutes: { action: "accept", content: { value: 20 } } };
    const round2 = await answerer.callToolRound("plan_visit", {}, { answers, state: round1.state });
    assert("questions" in round2);
    assert.deepEqual(Object.keys(round2.questions), ["sample-1", "roots-1"]);
    answers = {
      "sample-1": { role: "assistant", content: { type: "text", text: "One." }, model: "me" },
      "roots-1": { roots: [{ uri: "file:///tmp", name: "tmp" }] },
    };
    const done = await answerer.callToolRound("plan_visit", {}, { answers, state: round2.state });
    assert(!("questions" in done));
    assert.equal(done.text, "One. Saved in tmp.");
  } else {
    // Without roots the client declares none, so the server's question fails before it is sent.
    const { roots: _, ...poor } = able;
    minutes = 5;
    await using client = await Client.connect(first, { ...poor, revision });
    const failed = await client.callTool("plan_visit", {}, { throwOnError: false });
    assert(failed.isError && failed.text.includes("roots"), failed.text);
  }
}
