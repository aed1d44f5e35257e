/** Servers in servers: names, middleware of every level, changes, and lifespans. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { Server } from "gudgeon";
import { apiKeys } from "gudgeon/auth";
import { connect } from "gudgeon/testing";

import { closing } from "./closing.mjs";

function named(app, level) {
  app.middleware(async ({ params }, next) => `${level}[${params.name}](${await next()})`, { on: "tools/call" });
}

const using = (app, options, use) => closing(connect(app, options), use);

const namesIn = (app) => using(app, {}, async (client) => (await client.listTools()).map(({ name }) => name));

test("each level runs its middleware and sees its own names", async () => {
  const [house, room, shelf] = ["house", "room", "shelf"].map((name) => new Server(name));
  for (const app of [house, room, shelf]) named(app, app.name);
  room.mount("shelf", shelf);
  house.mount("room", room);
  shelf.tool("open", {}, () => "Dune");
  await using(house, {}, async (client) => {
    assert.equal((await client.callTool("room_shelf_open")).text, "house[room_shelf_open](room[shelf_open](shelf[open](Dune)))");
  });
  await using(shelf, {}, async (client) => assert.equal((await client.callTool("open")).text, "shelf[open](Dune)"));
});

test("only the middle has middleware, and it comes late", async () => {
  const [house, room, shelf] = ["house", "room", "shelf"].map((name) => new Server(name));
  shelf.tool("tidy", {}, () => "ok");
  room.mount("shelf", shelf);
  house.mount("room", room);
  named(room, "room");
  await using(house, {}, async (client) => assert.equal((await client.callTool("room_shelf_tidy")).text, "room[shelf_tidy](ok)"));
});

test("notifications of a mounted server reach the clients of the servers around it", async () => {
  const [house, room, shelf] = ["house", "room", "shelf"].map((name) => new Server(name));
  shelf.resource("shelf://about", {}, () => "x");
  room.mount("shelf", shelf);
  house.mount("room", room);
  for (const era of ["2025-06-18", "2026-07-28"]) {
    await using(house, { revision: era }, async (client) => {
      const changes = await client.subscribe({ uris: ["shelf://about"] }).open();
      shelf.notifyUpdated("shelf://about");
      assert.deepEqual((await changes.next()).value, { kind: "updated", uri: "shelf://about" });
      await changes.return();
    });
  }
});

test("tags of a mounted server choose its own things everywhere", async () => {
  const [house, shelf] = [new Server("house"), new Server("shelf")];
  house.tool("dust", { tags: ["chores"] }, () => "house");
  shelf.tool("tidy", { tags: ["chores"] }, () => "shelf");
  house.mount("shelf", shelf);
  shelf.tools.disable({ tags: ["chores"] });
  assert.deepEqual(await namesIn(house), ["dust"]);
  shelf.tools.enable({ tags: ["chores"] });
  assert.deepEqual(await namesIn(house), ["dust", "shelf_tidy"]);
  house.tools.disable({ tags: ["chores"] });
  assert.deepEqual(await namesIn(house), []);
  assert.deepEqual(await namesIn(shelf), ["tidy"]);
});

test("a prefix that fits no name, and what can't be mounted, changes nothing", async () => {
  const [house, shelf] = [new Server("house"), new Server("shelf")];
  for (const prefix of ["", "a b", "a/b", "ä"]) assert.throws(() => house.mount(prefix, shelf), /a prefix is one or more letters/);
  assert.throws(() => house.mount(7, shelf), /mount\(7\): the prefix must be a string/);
  shelf.tool("one", {}, () => "x");
  shelf.tool("two", {}, () => "x");
  house.tool("shelf_two", {}, () => "x");
  assert.throws(() => house.mount("shelf", shelf), /"shelf_two" is already registered/);
  assert.deepEqual(await namesIn(house), ["shelf_two"]);
  house.mount("other", shelf);
  assert.throws(() => shelf.mount("house", house), /itself/);
  house.tool("other_three", {}, () => "x");
  assert.throws(() => shelf.tool("three", {}, () => "x"), /"other_three" is already registered with "house"/);
  assert.ok(!shelf.tools.has("three"));
});

test("a server that authenticates its callers itself is not mounted", async () => {
  const house = new Server("house");
  const shelf = new Server("shelf", { auth: apiKeys({ s3cret: "ada" }) });
  shelf.tool("one", {}, () => "x");
  assert.throws(() => house.mount("shelf", shelf), {
    name: "TypeError",
    message: /"shelf" can't be mounted into "house".*give `auth` to "house" only/,
  });
  house.tool("own", {}, () => "x");
  assert.deepEqual(await namesIn(house), ["own"]);
  const guarded = new Server("house", { auth: apiKeys({ s3cret: "ada" }) });
  guarded.mount("shelf", new Server("shelf"));
});

test("a server without a name is refused", () => {
  for (const name of ["", " "]) assert.throws(() => new Server(name), /name must (be a non-empty string|not be empty)/);
});

test("one lifespan that fails leaves what was entered", async () => {
  const told = [];
  const life = (name, fails = false) => ({
    lifespan: () => {
      if (fails) throw new Error(`${name} can't begin`);
      told.push(`+${name}`);
      return { value: name, close: () => void told.push(`-${name}`) };
    },
  });
  const house = new Server("house", life("house"));
  house.mount("a", new Server("a", life("a")));
  house.mount("b", new Server("b", life("b", true)));
  await assert.rejects(connect(house, {}), /b can't begin/);
  assert.deepEqual(told, ["+house", "+a", "-a", "-house"]);
});

test("a lifespan that comes too late is refused", async () => {
  const house = new Server("house");
  const shelf = new Server("shelf");
  shelf.mount("books", new Server("books", { lifespan: () => ({ value: 1 }) }));
  await closing(connect(house, {}), async () => {
    house.mount("plain", new Server("plain"));
    assert.throws(() => house.mount("shelf", shelf), /the lifespan of "books" is entered with that of "house".*mount it before/);
  });
  house.mount("shelf", shelf);
  await closing(connect(house, {}), async () => {});
});
