let report = null;
let page = null;

/** Reads the data of the page, once. */
function loadReport() {
  page = JSON.parse(document.getElementById("data").textContent);
  report = page.explanation;
  report.breaks.forEach((found, index) => (found.index = index));
  report.graphs.forEach((graph, index) => (graph.index = index));
}

/** A site as an object; null for none. */
function site(packed) {
  if (!packed) return null;
  const [path, line, column, endLine, endColumn] = packed;
  return { path, line, column, endLine, endColumn };
}

/** Shortens the path of an installed file to the part from its package on. */
function shortPath(path) {
  return page.short[path];
}

function fileName(path) {
  return page.paths[path].split("/").pop();
}

function ruleWords(id) {
  return id && page.rules[id] ? `${id} ${page.rules[id].name}` : null;
}

/** Whether the device's time is what counts: where the host waits for it, it waits for what has to be done. */
function isOnDevice(price) {
  return price.waits && price.device_seconds !== null;
}

/** What one pass takes, in seconds. */
function passSeconds(price) {
  return isOnDevice(price) ? Math.min(price.device_seconds, price.host_seconds) : price.host_seconds;
}

/** The total of a price over the run, in seconds; null without one, and for a single pass, which may have been disturbed. */
function inAll(price) {
  return price && price.passes > 1 ? price.passes * passSeconds(price) : null;
}

/** The lines kept of a file: `[first line, lines]` pairs in order. */
const segmentsOf = remembered((path) =>
  (page.sources[path] ?? []).map(([first, text]) => [first, text.split("\n")]),
);

function remembered(compute) {
  const known = new Map();
  return (key) => {
    if (!known.has(key)) known.set(key, compute(key));
    return known.get(key);
  };
}

/** A line's text, or null where the page does not have it. */
function lineText(path, line) {
  const found = segmentsOf(path).find(([first, lines]) => line >= first && line < first + lines.length);
  return found ? found[1][line - found[0]] : null;
}

/** Recompiles by cause, in order: `{cause, words, recompiles}`. */
const causesOf = remembered((recompiles) => {
  const groups = new Map();
  for (const recompile of recompiles) {
    if (!groups.has(recompile.cause)) groups.set(recompile.cause, []);
    groups.get(recompile.cause).push(recompile);
  }
  return [...groups].map(([cause, group]) => ({ cause, words: report.causes[cause], advice: report.advice[cause], recompiles: group }));
});

/** The frames that the breaks do not explain. */
function unexplained() {
  return report.frames.filter((frame) => !frame.break_site);
}
