// The program that the extension starts, over the real protocol: without an editor, which cannot be loaded here.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

import rpc from "vscode-languageserver-protocol/node";

import { serverCommand } from "../out/command.mjs";

const NET = `import torch


@torch.compile
def f(x):
    print(x)
    return x
`;

test("the settings decide which program serves", () => {
  const nothing = { path: "", interpreter: "", selected: undefined, platform: "linux" };
  assert.deepEqual(serverCommand(nothing), { command: "python3", args: ["-m", "breakscan", "server"] });
  assert.equal(serverCommand({ ...nothing, platform: "win32" }).command, "python");
  assert.equal(serverCommand({ ...nothing, selected: "/venv/bin/python" }).command, "/venv/bin/python");
  assert.equal(serverCommand({ ...nothing, selected: "/venv/bin/python", interpreter: "/py" }).command, "/py");
  assert.deepEqual(serverCommand({ ...nothing, path: "/bin/breakscan", interpreter: "/py" }), {
    command: "/bin/breakscan",
    args: ["server"],
  });
});

test("findings", { timeout: 60_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), "breakscan-"));
  writeFileSync(join(folder, "net.py"), NET);
  const { command, args } = serverCommand({
    path: "",
    interpreter: process.env.BREAKSCAN_PYTHON ?? "",
    selected: undefined,
    platform: process.platform,
  });
  const server = spawn(command, args, { cwd: folder, stdio: ["pipe", "pipe", "inherit"] });
  const ended = new Promise((resolve) => server.on("exit", resolve));
  const connection = rpc.createProtocolConnection(
    new rpc.StreamMessageReader(server.stdout),
    new rpc.StreamMessageWriter(server.stdin),
  );
  connection.onRequest(rpc.RegistrationRequest.type, () => undefined);
  const told = new Promise((resolve) =>
    connection.onNotification(rpc.PublishDiagnosticsNotification.type, resolve),
  );
  connection.listen();
  const uri = pathToFileURL(folder).href;
  await connection.sendRequest(rpc.InitializeRequest.type, {
    processId: process.pid,
    rootUri: uri,
    workspaceFolders: [{ uri, name: "project" }],
    capabilities: { workspace: { didChangeWatchedFiles: { dynamicRegistration: true } } },
  });
  await connection.sendNotification(rpc.InitializedNotification.type, {});
  const document = { uri: `${uri}/net.py`, languageId: "python", version: 1, text: NET };
  await connection.sendNotification(rpc.DidOpenTextDocumentNotification.type, { textDocument: document });
  const { diagnostics } = await told;
  assert.deepEqual(
    diagnostics.map((one) => one.code),
    ["BRK401"],
  );
  await connection.sendRequest(rpc.ShutdownRequest.type);
  await connection.sendNotification(rpc.ExitNotification.type);
  assert.equal(await ended, 0);
  connection.dispose();
});
