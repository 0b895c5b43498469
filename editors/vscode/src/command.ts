// Which program serves: kept apart from the editor, so that it is tested without one.

/** What the settings say, and what else is known. */
export interface Wanted {
  /** `breakscan.path` */
  path: string;
  /** `breakscan.interpreter` */
  interpreter: string;
  /** The interpreter that the Python extension has selected. */
  selected: string | undefined;
  platform: NodeJS.Platform;
}

/** A program and its arguments. */
export interface Command {
  command: string;
  args: string[];
}

/** The command line of the server: that of the settings, else the package of an interpreter. */
export function serverCommand(wanted: Wanted): Command {
  if (wanted.path !== "") {
    return { command: wanted.path, args: ["server"] };
  }
  const usual = wanted.platform === "win32" ? "python" : "python3";
  // `||`: settings that are not set are empty.
  const interpreter = wanted.interpreter || wanted.selected || usual;
  return { command: interpreter, args: ["-m", "breakscan", "server"] };
}
