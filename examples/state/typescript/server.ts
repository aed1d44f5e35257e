/** A library's loan desk, served by several processes: any of them can continue a call after the answer. */
import { ask, Server } from "gudgeon";
import { z } from "zod";

const desk = process.env["LIBRARY_DESK"] ?? "only";
// The first key encrypts, all of them decrypt. To rotate: put the new key first, and drop the old one after `stateTtlMs`.
const keys = process.env["LIBRARY_KEYS"]?.split(",");
const app = new Server("loan-desk", { requestStateKeys: keys, stateTtlMs: 600_000 });

const Reader = z.object({ name: z.string(), card: z.int() });
const Book = z.object({ book: z.string() });

const BORROW = "Borrow a book: who borrows it, and for how long.";
app.tool("borrow", { description: BORROW, input: Book }, async ({ book }, ctx) => {
  // Run only by the desk that gets the first request.
  const loan = await ctx.step("loan", () => `loan of ${book} at the ${desk} desk`);
  const reader = await ctx.elicit("Who are you?", Reader, { key: "reader" });
  const weeks = await ctx.elicit("For how many weeks?", z.int(), { key: "weeks" });
  return `${loan}: ${reader.name}, ${weeks} weeks, stamped at the ${desk} desk`;
});

app.tool("give_back", { description: "Give a book back.", input: Book }, ({ book }, ctx) => {
  const damaged = ask.elicit("Is it damaged?", z.boolean(), { key: "damaged" });
  const answer = ctx.answer(damaged);
  return answer === undefined ? damaged : `${book}: ${answer ? "repair" : "shelf"}, says the ${desk} desk`;
});

await app.run(process.argv[2]);
