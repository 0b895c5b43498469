// Runs `breakscan server` for the Python files of a workspace.

import { commands, type Disposable, type ExtensionContext, window, workspace } from "vscode";
import { LanguageClient, type LanguageClientOptions } from "vscode-languageclient/node";

import { serverCommand } from "./command";
import { pythonEnvironments, selectedInterpreter } from "./pythonExtension";

/** The settings after which the server has to start anew; those of the trace do not. */
const OF_THE_SERVER = ["breakscan.path", "breakscan.interpreter"];

let client: LanguageClient | undefined;
/** Starts and stops, one after the other. */
let changing: Promise<void> = Promise.resolve();

export async function activate(context: ExtensionContext): Promise<void> {
  const output = window.createOutputChannel("breakscan", { log: true });
  const restart = (): Promise<void> => {
    changing = changing.then(stop).then(start);
    return changing;
  };

  async function start(): Promise<void> {
    const settings = workspace.getConfiguration("breakscan");
    const { command, args } = serverCommand({
      path: settings.get("path", ""),
      interpreter: settings.get("interpreter", ""),
      selected: await selectedInterpreter(workspace.workspaceFolders?.[0]?.uri),
      platform: process.platform,
    });
    const options: LanguageClientOptions = {
      documentSelector: [{ scheme: "file", language: "python" }],
      outputChannel: output,
    };
    const cwd = workspace.workspaceFolders?.[0]?.uri.fsPath;
    client = new LanguageClient("breakscan", "breakscan", { command, args, options: { cwd } }, options);
    try {
      await client.start();
    } catch (error) {
      output.error(String(error));
      client = undefined;
      void window.showErrorMessage(
        `breakscan does not start with "${[command, ...args].join(" ")}". Install it there with its extra "server", ` +
          "or set breakscan.path or breakscan.interpreter.",
      );
    }
  }

  const subscriptions: Disposable[] = [
    output,
    commands.registerCommand("breakscan.restart", restart),
    commands.registerCommand("breakscan.showOutput", () => output.show()),
    workspace.onDidChangeConfiguration((event) => {
      if (OF_THE_SERVER.some((name) => event.affectsConfiguration(name))) {
        void restart();
      }
    }),
  ];
  const environments = await pythonEnvironments();
  if (environments !== undefined) {
    subscriptions.push(environments.onDidChangeActiveEnvironmentPath(() => void restart()));
  }
  context.subscriptions.push(...subscriptions);
  await restart();
}

export async function deactivate(): Promise<void> {
  changing = changing.then(stop);
  await changing;
}

async function stop(): Promise<void> {
  const running = client;
  client = undefined;
  await running?.dispose();
}
