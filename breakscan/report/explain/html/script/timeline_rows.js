function timelineRows() {
  const runs = report.runs.map(([graph, at, seconds]) => runItem(graph, at, seconds)).sort(byStart);
  const rows = lanes(report.compiles.map(compileItem).sort(byStart)).map((items, index) => ({
    label: index ? "" : "compiling",
    strong: true,
    items,
  }));
  lanes(runs).forEach((items, index) => rows.push({ label: index ? "" : "graphs", strong: true, items: withGaps(items) }));
  return [...rows, ...graphRows(runs)].filter((row) => row.items.length);
}

function byStart(a, b) {
  return a.from - b.from;
}

function compileItem(frame) {
  return {
    kind: frame.failed ? "failed" : "compile",
    from: frame.at,
    to: frame.at + frame.seconds,
    label: frame.function,
    words: () => `${frame.failed ? "failed to compile" : "compiled"} ${frame.rest_only ? "the rest of " : ""}${frame.function} (${frame.compile_id}): ${duration(frame.seconds)}, ${clock(frame.at)}`,
    link: () => placeLink(site(frame.site)),
  };
}

function runItem(index, at, seconds) {
  const graph = report.graphs[index];
  const name = `graph ${index}`;
  return {
    graph: index,
    hue: index,
    from: at,
    to: at + seconds,
    label: name,
    words: () => `${name}${graph?.function ? `, ${graph.function}` : ""}: ${duration(seconds)}, ${clock(at)}`,
    link: () => (graph ? el("a", { href: `#graphs/${index}` }, "its operations and kernels") : null),
  };
}

function clock(at) {
  return `${at.toFixed(4)} s after the start`;
}

/** Spreads items that overlap over rows. */
function lanes(items) {
  const rows = [];
  for (const item of items) {
    const free = rows.find((row) => row[row.length - 1].to <= item.from + CLOSEST);
    if (free) free.push(item);
    else rows.push([item]);
  }
  return rows;
}

/** Runs of graphs that a break ended, each with the time after it up to the next run. */
function withGaps(items) {
  // Without the times of compilations there is no telling what a gap holds.
  if (!report.compiles.length) return items;
  const compiled = report.compiles.map((frame) => [frame.at, frame.at + frame.seconds]);
  return items.flatMap((item, index) => {
    const ended = report.graphs[item.graph]?.ended_by;
    const next = items[index + 1];
    if (!ended || !next || next.from <= item.to) return [item];
    if (compiled.some(([from, to]) => from < next.from && to > item.to)) return [item];
    return [item, gapItem(item, next, ended)];
  });
}

function gapItem(before, next, ended) {
  return {
    kind: "gap",
    from: before.to,
    to: next.from,
    label: "",
    words: () => `${duration(next.from - before.to)} from graph ${before.graph} to graph ${next.graph}, behind the break at ${shortPath(ended[0])}:${ended[1]}`,
    link: () => placeLink(site(ended)),
  };
}

/** A row for each graph that ran; of many, for those that took most time. */
function graphRows(runs) {
  const spent = totals(runs.map((run) => [run.graph, run.to - run.from]));
  const most = [...spent].sort((a, b) => b[1] - a[1]).slice(0, MOST_GRAPH_ROWS).map(([graph]) => graph).sort((a, b) => a - b);
  const kept = new Map(most.map((graph) => [graph, []]));
  for (const run of runs) kept.get(run.graph)?.push(run);
  return [...kept].flatMap(([graph, items]) =>
    lanes(items).map((lane, index) => ({ label: index ? "" : `${graph}  ${report.graphs[graph]?.function ?? ""}`, items: lane })),
  );
}
