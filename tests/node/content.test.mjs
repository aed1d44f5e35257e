import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { pathToFileURL } from "node:url";

import { assistant, audio, embed, file, image, resourceLink, text, user } from "gudgeon";

import {
  contentFromWire,
  contentToWire,
  isContent,
  messageFromWire,
  messageToWire,
} from "../../bindings-node/dist/modules/model/content.js";

const folder = mkdtempSync(join(tmpdir(), "gudgeon-content-"));
after(() => rmSync(folder, { recursive: true }));

test("what the functions make is content; a like-shaped object and a spread copy are not", () => {
  assert.ok(isContent(text("a")));
  assert.ok(!isContent({ type: "text", text: "a" }));
  assert.ok(!isContent({ ...text("a") }));
  assert.deepEqual(Object.keys(text("a")), ["type", "text"]);
});

test("what no client could read is refused where it is made", () => {
  const bytes = new Uint8Array([1]);
  for (const [make, problem] of [
    [() => text(5), "text() takes a string, not number"],
    [() => image(bytes), 'image(data, format) takes the format as a string, such as "png" or a media type, not undefined'],
    [() => audio(bytes, { mimeType: "audio/wav" }), 'audio(data, format) takes the format as a string, such as "wav" or a media type, not object'],
    [() => resourceLink("a://b"), "resourceLink({ uri, name }) needs the URI as a string, not undefined"],
    [() => resourceLink({ uri: "a://b" }), "resourceLink({ uri, name }) needs the name as a string, not undefined"],
    [() => embed({ text: "b" }), "embed({ uri, text }) needs the URI as a string, not undefined"],
    [() => embed({ uri: "a://b", text: null }), "embed({ uri, text }) needs text or, as bytes, blob, not null"],
  ]) {
    assert.throws(make, { name: "TypeError", message: problem });
  }
});

test("content goes to the wire and comes back the same", () => {
  const noted = image(new Uint8Array([1, 2, 255]), "png");
  noted.annotations = { audience: ["user"], priority: 0.5 };
  noted.meta = { "acme/k": 1 };
  const wires = [
    [text("hi"), { type: "text", text: "hi" }],
    [noted, { type: "image", data: "AQL/", mimeType: "image/png", annotations: { audience: ["user"], priority: 0.5 }, _meta: { "acme/k": 1 } }],
    [audio(new Uint8Array([0]), ".mp3"), { type: "audio", data: "AA==", mimeType: "audio/mpeg" }],
    [resourceLink({ uri: "a://b", name: "b" }), { type: "resource_link", uri: "a://b", name: "b" }],
    [embed({ uri: "a://b", text: "t", meta: { k: 1 } }), { type: "resource", resource: { uri: "a://b", text: "t", _meta: { k: 1 } } }],
    [embed({ uri: "a://b", mimeType: "x/y", blob: new Uint8Array([7]) }), { type: "resource", resource: { uri: "a://b", mimeType: "x/y", blob: "Bw==" } }],
  ];
  for (const [content, wire] of wires) {
    assert.deepEqual(contentToWire(content), wire);
    const back = contentFromWire(wire);
    assert.ok(isContent(back));
    assert.deepEqual({ ...back }, { ...content });
  }
});

test("bytes are taken from a view's own part of its buffer", () => {
  assert.equal(contentToWire(image(new Uint8Array([9, 1, 2, 9]).subarray(1, 3), "png")).data, "AQI=");
});

test("sampling's tool use and tool result go through", () => {
  const use = { type: "tool_use", id: "1", name: "add", input: { a: 1 } };
  const outcome = { type: "tool_result", toolUseId: "1", content: [{ type: "text", text: "2" }], isError: false };
  assert.deepEqual(contentToWire(contentFromWire(use)), use);
  assert.deepEqual(contentToWire(contentFromWire(outcome)), outcome);
});

test("unknown types, and known ones of another shape, pass through unchanged", () => {
  for (const raw of [{ type: "hologram", x: [1] }, { type: "text", text: 5 }, { type: "image", data: 1, mimeType: "a/b" }, { type: "resource", resource: null }, {}]) {
    const content = contentFromWire(raw);
    assert.equal(content.type, "other");
    assert.deepEqual(contentToWire(content), raw);
  }
});

test("media types: a bare format, with a dot, whole", () => {
  const of = (format) => image(new Uint8Array(), format).mimeType;
  assert.deepEqual(["png", ".JPG", "svg", "image/x-icon"].map(of), ["image/png", "image/jpeg", "image/svg+xml", "image/x-icon"]);
});

test("a path in place of bytes is an error with the fix", () => {
  assert.throws(() => image("cover.png", "png"), /image\(\) takes bytes as a Uint8Array, not "cover.png"; for a path use file\(\)/);
});

test("file() embeds UTF-8 as text, anything else as bytes", async () => {
  const note = join(folder, "note ü.md");
  const picture = join(folder, "dot.png");
  writeFileSync(note, "# Grüße");
  writeFileSync(picture, new Uint8Array([0x89, 0x50, 0, 255]));
  assert.deepEqual((await file(note)).resource, { uri: pathToFileURL(note).href, mimeType: "text/markdown", text: "# Grüße" });
  const embedded = await file(pathToFileURL(picture));
  assert.deepEqual(embedded.resource, { uri: pathToFileURL(picture).href, mimeType: "image/png", blob: new Uint8Array([0x89, 0x50, 0, 255]) });
  await assert.rejects(file(join(folder, "missing")), { code: "ENOENT" });
});

test("messages hold one piece of content or several, and their text", () => {
  const asked = user(["Look:", image(new Uint8Array([1]), "png"), "Nice?"]);
  assert.equal(asked.role, "user");
  assert.equal(asked.text, "Look:\nNice?");
  assert.deepEqual(messageToWire(asked).map((one) => [one.role, one.content.type]), [["user", "text"], ["user", "image"], ["user", "text"]]);
  assert.deepEqual(messageToWire(assistant("Yes")), [{ role: "assistant", content: { type: "text", text: "Yes" } }]);
  assert.equal(messageFromWire({ role: "assistant", content: { type: "text", text: "Yes" } }).text, "Yes");
  assert.throws(() => user({ type: "text", text: "x" }), /content must be a string or made by text\(\)/);
});
