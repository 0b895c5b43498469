// The interpreter that the Python extension has selected, by its public interface.

import { type Event, extensions, type Uri } from "vscode";

interface PythonEnvironments {
  getActiveEnvironmentPath(resource?: Uri): { path: string };
  resolveEnvironment(path: { path: string }): Promise<{ executable: { uri?: Uri } } | undefined>;
  onDidChangeActiveEnvironmentPath: Event<unknown>;
}

/** What the Python extension offers; undefined where there is none. */
export async function pythonEnvironments(): Promise<PythonEnvironments | undefined> {
  const extension = extensions.getExtension<{ environments?: PythonEnvironments }>("ms-python.python");
  return (await extension?.activate())?.environments;
}

/** The interpreter for a folder. */
export async function selectedInterpreter(folder: Uri | undefined): Promise<string | undefined> {
  const environments = await pythonEnvironments();
  if (environments === undefined) {
    return undefined;
  }
  const environment = await environments.resolveEnvironment(environments.getActiveEnvironmentPath(folder));
  return environment?.executable.uri?.fsPath;
}
