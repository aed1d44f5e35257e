/** A customer at the travel desk, who accepts, declines, and cancels. */
import assert from "node:assert/strict";
import { cancelled, Client, declined, ProtocolError, type Revision, type Target, ToolError, type ToolResult } from "gudgeon";

const TRIP = { city: "Lisbon", leave: "2027-05-04", nights: 3, seat: "window", extras: ["breakfast"] };

/** Answers that arrive twice, as after a broken connection. Between the rounds the client holds the state. */
async function again(customer: Client): Promise<void> {
  /** Begins a call; returns a function that answers its one question. */
  async function begun(tool: string, value: unknown): Promise<() => Promise<ToolResult>> {
    const first = await customer.callToolRound(tool, {});
    assert("questions" in first);
    const answers = { "elicit-1": { action: "accept", content: { value } } };
    return async () => {
      const done = await customer.callToolRound(tool, {}, { answers, state: first.state });
      assert(!("questions" in done));
      return done;
    };
  }

  const change = await begun("change_booking", "2027-05-07");
  assert.equal((await change()).text, "2027-05-07, receipt 2, 2 in all");
  assert.equal((await change()).text, "2027-05-07, receipt 2, 2 in all"); // ran again, but not its step

  const take = await begun("last_seat", true);
  assert.equal((await take()).text, "27A is yours");
  await assert.rejects(take(), (error) => error instanceof ProtocolError && error.code === -32602); // must not run twice
}

export async function story(target: Target, revision: Revision): Promise<void> {
  const answers: Record<string, unknown> = {
    "Where do you want to go?": TRIP,
    "Lisbon for 255 euros?": true,
    "Name as in the passport?": "Ada Byron",
    "How many bags?": 2,
    "Which meal?": "fish",
    "Which day instead?": "2027-05-06",
    "The last seat. Take it?": true,
    "Cancel booking 7?": true,
    "Please pay at your bank.": {}, // a page has nothing to fill in: anything but a no means "I will go there"
  };
  let asked: string[] = [];
  let tellPageDone = (): void => {};
  const pageDone = new Promise<void>((resolve) => (tellPageDone = resolve));

  await using customer = await Client.connect(target, {
    revision,
    onElicit(request) {
      asked.push(request.message);
      if (request.mode === "url") assert.equal(request.url, "https://bank.example/pay?euros=255");
      return answers[request.message];
    },
    onSample(request) {
      assert.deepEqual([request.system, request.maxTokens], ["You are cheerful.", 60]);
      return `Greetings! ${request.messages[0]?.text}`;
    },
    onUrlDone: () => tellPageDone(),
    roots: ["file:///home/ada/trips"],
  });
  const say = async (tool: string, args: object = {}): Promise<string> => (await customer.callTool(tool, args)).text;

  // A form with six fields, one of which has a default; then a boolean.
  assert.equal(await say("book_trip"), "Lisbon from 2027-05-04, window seat");
  assert.deepEqual(asked, ["Where do you want to go?", "Lisbon for 255 euros?"]);

  // Declining, closing the form, and the answer "false" are three different outcomes.
  for (const [no, reply] of [
    [declined, "Another trip, then?"],
    [cancelled, "The offer stands until tonight."],
    [false, "Nothing is booked."],
  ]) {
    answers["Lisbon for 255 euros?"] = no;
    assert.equal(await say("book_trip"), reply);
  }

  // A refusal that the handler does not catch becomes the tool's error, which the model reads.
  answers["Where do you want to go?"] = declined;
  await assert.rejects(say("book_trip"), (error) => {
    return error instanceof ToolError && error.text === "The user declined: Where do you want to go?";
  });

  asked = [];
  assert.equal(await say("check_in"), "Ada Byron, 2 bags, fish");
  assert.deepEqual(asked.sort(), ["How many bags?", "Name as in the passport?", "Which meal?"]);

  assert.equal(await say("pay", { euros: 255 }), "255 euros are paid.");
  if (revision === "2025-11-25") await pageDone;

  assert.equal(await say("postcard", { city: "Lisbon" }), "Greetings! A postcard from Lisbon. (unknown)");
  assert.equal(await say("save_ticket"), "file:///home/ada/trips/ticket.pdf");
  assert.equal(await say("change_booking"), "2027-05-06, receipt 1, 1 in all");
  assert.equal(await say("last_seat"), "27A is yours");
  if (revision === "2026-07-28") await again(customer);
  answers["The last seat. Take it?"] = cancelled;
  const failed = await customer.callTool("last_seat", {}, { throwOnError: false });
  assert(failed.isError && failed.text.includes("The last seat. Take it?"));
  answers["The last seat. Take it?"] = true;
  assert.equal(await say("last_seat"), "27A is yours");
  assert.equal(await say("cancel_trip", { booking: 7 }), "cancelled");
  answers["Cancel booking 7?"] = false;
  assert.equal(await say("cancel_trip", { booking: 7 }), "kept");
}
