// What is packaged: the bundle and what describes it, and nothing else.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";

const description = JSON.parse(readFileSync(new URL("../package.json", import.meta.url)));
const root = new URL("..", import.meta.url);

test("only what is needed is packaged", () => {
  const listed = execFileSync("npx", ["vsce", "ls", "--no-dependencies"], { cwd: root, encoding: "utf-8" });
  assert.deepEqual(listed.trim().split("\n").sort(), ["LICENSE", "README.md", "dist/extension.js", "package.json"]);
  assert.ok(existsSync(new URL("../dist/extension.js", import.meta.url)));
});

test("the bundle asks for the editor and for what Node.js has, and for nothing else", async () => {
  const { builtinModules } = await import("node:module");
  const bundle = readFileSync(new URL("../dist/extension.js", import.meta.url), "utf-8");
  const asked = new Set([...bundle.matchAll(/\brequire\("([^"]+)"\)/g)].map((found) => found[1].replace("node:", "")));
  assert.ok(asked.delete("vscode"));
  assert.deepEqual(
    [...asked].filter((name) => !builtinModules.includes(name)),
    [],
  );
});

test("every command and setting that the code names is described, and every one described is named", () => {
  const code = ["extension", "pythonExtension"]
    .map((name) => readFileSync(new URL(`../src/${name}.ts`, import.meta.url), "utf-8"))
    .join("\n");
  const commands = description.contributes.commands.map((one) => one.command);
  assert.deepEqual([...code.matchAll(/registerCommand\("([^"]+)"/g)].map((found) => found[1]), commands);
  const settings = Object.keys(description.contributes.configuration.properties);
  const read = [...code.matchAll(/settings\.get\("([^"]+)"/g)].map((found) => `breakscan.${found[1]}`);
  // The library reads that of the trace, by the name of the client.
  assert.deepEqual([...read, "breakscan.trace.server"].sort(), settings.sort());
  assert.equal(description.capabilities.untrustedWorkspaces.supported, false);
});
