// Writes into package.json which platforms the package is for: the native module is built for the machine that builds it.
// npm then refuses to install the package on others, instead of installing what can't be loaded there.
import { readFileSync, writeFileSync } from "node:fs";

const file = new URL("../package.json", import.meta.url);
const text = readFileSync(file, "utf8");
const manifest = JSON.parse(text);
const isMusl = process.platform === "linux" && process.report.getReport().header.glibcVersionRuntime === undefined;
manifest.os = [process.platform];
manifest.cpu = [process.arch];
if (process.platform === "linux") manifest.libc = [isMusl ? "musl" : "glibc"];
else delete manifest.libc;
const written = `${JSON.stringify(manifest, undefined, 2)}\n`;
if (written !== text) writeFileSync(file, written);
