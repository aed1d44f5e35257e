/** A travel desk that asks its customer: forms, a URL to open, the customer's model and folders. */
import { ask, Server, ToolError } from "gudgeon";
import { z } from "zod";

const app = new Server("travel-desk");

const Trip = z.object({
  city: z.string(),
  leave: z.iso.date(),
  nights: z.int().min(1).max(30),
  seat: z.enum(["window", "aisle"]),
  extras: z.array(z.enum(["breakfast", "parking"])),
  insured: z.boolean().default(false),
});

const BOOK_TRIP = "Book a trip: asks where to, says the price, and asks again.";
app.tool("book_trip", { description: BOOK_TRIP }, async (_, ctx) => {
  const trip = await ctx.elicit("Where do you want to go?", Trip); // Declined, which is not caught here, ends the call
  const price = 80 * trip.nights + 15 * trip.extras.length + (trip.insured ? 30 : 0);
  const outcome = await ctx.tryElicit(`${trip.city} for ${price} euros?`, z.boolean());
  if (outcome.action === "decline") return "Another trip, then?";
  if (outcome.action === "cancel") return "The offer stands until tonight.";
  return outcome.value ? `${trip.city} from ${trip.leave}, ${trip.seat} seat` : "Nothing is booked.";
});

app.tool("check_in", { description: "Check in: name, bags and meal are asked at once." }, async (_, ctx) => {
  const [name, bags, meal] = await ctx.ask(
    ask.elicit("Name as in the passport?", z.string()),
    ask.elicit("How many bags?", z.int()),
    ask.elicit("Which meal?", z.enum(["fish", "beans"]), { key: "meal" }),
  );
  return `${name}, ${bags} bags, ${meal}`;
});

const PAY = "Pay on the bank's page, so that no card number passes through the model.";
app.tool("pay", { description: PAY, input: z.object({ euros: z.int() }) }, async ({ euros }, ctx) => {
  const page = await ctx.elicitUrl("Please pay at your bank.", `https://bank.example/pay?euros=${euros}`);
  app.notifyUrlDone(page); // after the bank's callback; 2026-07-28 has no such notification
  return `${euros} euros are paid.`;
});

const POSTCARD = "Write a postcard, in the words of the customer's own model.";
app.tool("postcard", { description: POSTCARD, input: z.object({ city: z.string() }) }, async ({ city }, ctx) => {
  const answer = await ctx.sample(`A postcard from ${city}.`, { system: "You are cheerful.", maxTokens: 60 });
  return `${answer.text} (${answer.model})`;
});

const SAVE_TICKET = "Say where the ticket goes: the first folder that the customer opened to us.";
app.tool("save_ticket", { description: SAVE_TICKET }, async (_, ctx) => {
  const [folder] = await ctx.roots();
  if (!folder) throw new ToolError("You opened no folder to me.");
  return `${folder.uri}/ticket.pdf`;
});

const fees: number[] = [];
const held: string[] = [];

function takeFee(euros: number): string {
  fees.push(euros);
  return `receipt ${fees.length}`;
}

const CHANGE_BOOKING =
  "Change a booking. The handler may run again from its top; the step makes sure that the fee is taken once.";
app.tool("change_booking", { description: CHANGE_BOOKING }, async (_, ctx) => {
  const receipt = await ctx.step("fee", () => takeFee(20));
  const day = await ctx.elicit("Which day instead?", z.iso.date());
  return `${day}, ${receipt}, ${fees.length} in all`;
});

const LAST_SEAT =
  "Sell the last seat. It is held while the customer thinks, so this handler must never run twice for one call.";
app.tool("last_seat", { description: LAST_SEAT, replay: "forbid" }, async (_, ctx) => {
  held.push("27A");
  try {
    return (await ctx.elicit("The last seat. Take it?", z.boolean())) ? `${held[0]} is yours` : "gone";
  } finally {
    held.pop();
  }
});

const CANCEL = "Cancel a booking, in the explicit form: return the question, be called again with its answer.";
app.tool("cancel_trip", { description: CANCEL, input: z.object({ booking: z.int() }) }, ({ booking }, ctx) => {
  const sure = ask.elicit(`Cancel booking ${booking}?`, z.boolean());
  const answer = ctx.answer(sure);
  if (answer === undefined) return sure;
  return answer ? "cancelled" : "kept";
});

await app.run(process.argv[2]); // stdio, or the URL it is given
