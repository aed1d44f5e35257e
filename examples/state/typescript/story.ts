/** A client that begins a call at one process and continues at another, and one that modifies the state. */
import assert from "node:assert/strict";
import { cancelled, Client, type InputRequired, McpError, ProtocolError, type Revision, type Target, type ToolResult } from "gudgeon";

const [SUMMER, AUTUMN] = ["the key of the desks since summer", "the key of the desks since autumn"];
export const processes = [
  { LIBRARY_DESK: "north", LIBRARY_KEYS: SUMMER },
  { LIBRARY_DESK: "south", LIBRARY_KEYS: SUMMER },
  { LIBRARY_DESK: "new", LIBRARY_KEYS: `${AUTUMN},${SUMMER}` }, // in the middle of a rotation
  { LIBRARY_DESK: "other", LIBRARY_KEYS: AUTUMN }, // after it
];
const EMMA = { book: "Emma" };
const READER = { reader: { action: "accept", content: { name: "Ada", card: 7 } } };
const WEEKS = { weeks: { action: "accept", content: { value: 3 } } };
const FORMS: Record<string, unknown> = {
  "Who are you?": { name: "Ada", card: 7 },
  "For how many weeks?": 3,
  "Is it damaged?": false,
};

/** Returns the questions of a round, which must be these. */
function asked(round: ToolResult | InputRequired, ...keys: string[]): string {
  assert("questions" in round && round.state !== undefined);
  assert.deepEqual(Object.keys(round.questions), keys);
  return round.state;
}

function answered(round: ToolResult | InputRequired): ToolResult {
  assert(!("questions" in round));
  return round;
}

export async function story(north: Target, south: Target, fresh: Target, other: Target, revision: Revision): Promise<void> {
  const at = (desk: Target): Promise<Client> => {
    return Client.connect(desk, { revision, onElicit: ({ message }) => FORMS[message] });
  };

  // A client that can't be asked borrows nothing.
  {
    await using mute = await Client.connect(north, { revision });
    await assert.rejects(mute.callTool("borrow", EMMA), (error) => error instanceof McpError && error.message.includes("elicitation"));
  }

  // One client and one process: the same code in every revision, without a state.
  {
    await using reader = await at(north);
    const done = await reader.callTool("borrow", EMMA);
    assert.equal(done.text, "loan of Emma at the north desk: Ada, 3 weeks, stamped at the north desk");
    assert.equal((await reader.callTool("give_back", EMMA)).text, "Emma: shelf, says the north desk");
    // Closing the form cancels, in every revision.
    const form = FORMS["Is it damaged?"];
    FORMS["Is it damaged?"] = cancelled;
    const givenUp = await reader.callTool("give_back", EMMA, { throwOnError: false });
    assert(givenUp.isError && givenUp.text.includes("Is it damaged?"));
    FORMS["Is it damaged?"] = form;
    if (revision === "2025-11-25") {
      // In a session the server asks while the call runs: there are no rounds, and so no state.
      assert.equal(answered(await reader.callToolRound("borrow", EMMA)).text, done.text);
      return;
    }
  }

  await using one = await at(north);
  await using two = await at(south);
  await using three = await at(fresh);
  await using four = await at(other);
  // Begun at the north desk, continued at the south desk, which runs the handler again with the answers so far;
  // the loan remains the one that the north desk registered.
  const first = asked(await one.callToolRound("borrow", EMMA), "reader");
  const second = asked(await two.callToolRound("borrow", EMMA, { answers: READER, state: first }), "weeks");
  // During a key rotation the new desk still decrypts states of the old key.
  const third = answered(await three.callToolRound("borrow", EMMA, { answers: WEEKS, state: second }));
  assert.equal(third.text, "loan of Emma at the north desk: Ada, 3 weeks, stamped at the new desk");

  // The explicit form needs no suspended handler and no replay; its state is sent in the same way.
  const state = asked(await one.callToolRound("give_back", EMMA), "damaged");
  const answers = { damaged: { action: "accept", content: { value: true } } };
  const told = answered(await two.callToolRound("give_back", EMMA, { answers, state }));
  assert.equal(told.text, "Emma: repair, says the south desk");

  // The new desk encrypts with the new key: desks without it can't decrypt the state.
  const later = asked(await three.callToolRound("borrow", EMMA), "reader");
  asked(await four.callToolRound("borrow", EMMA, { answers: READER, state: later }), "weeks");

  // Closing the form cancels, at whichever desk it is answered.
  const closed = { reader: { action: "cancel" } };
  const options = { answers: closed, state: first, throwOnError: false };
  const givenUp = answered(await two.callToolRound("borrow", EMMA, options));
  assert(givenUp.isError && givenUp.text.includes("Who are you?"));

  // Rejected, always with the same message: another key, a modified state, other arguments, another tool.
  const middle = Math.floor(first.length / 2);
  const forged = first.slice(0, middle) + (first[middle] === "A" ? "B" : "A") + first.slice(middle + 1);
  const attempts: [Client, string, object, string][] = [
    [four, "borrow", EMMA, first],
    [one, "borrow", EMMA, later],
    [two, "borrow", EMMA, forged],
    [two, "borrow", { book: "Dune" }, first],
    [two, "give_back", EMMA, first],
  ];
  for (const [client, tool, book, state] of attempts) {
    await assert.rejects(client.callToolRound(tool, book, { answers: READER, state }), (error) => {
      return error instanceof ProtocolError && error.code === -32602 && /Invalid or expired requestState/.test(error.message);
    });
  }
}
