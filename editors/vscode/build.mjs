// Bundles the extension with the libraries that it uses into one file. `vscode` is what the editor provides.
// `src/command.ts` is built on its own as well, for the tests.
import { build } from "esbuild";

const options = { bundle: true, platform: "node", target: "node20", logLevel: "warning" };
await build({
  ...options,
  entryPoints: ["src/extension.ts"],
  outfile: "dist/extension.js",
  format: "cjs",
  external: ["vscode"],
  minify: true,
});
await build({ ...options, entryPoints: ["src/command.ts"], outfile: "out/command.mjs", format: "esm" });
