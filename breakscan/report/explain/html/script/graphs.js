/** The graphs, each with its kernels and generated code beside the lines that they come from. */
class GraphsView {
  constructor() {
    const rows = report.graphs;
    const ran = rows.some((graph) => graph.runs);
    const timed = rows.some((graph) => graph.device_seconds !== null);
    const inAllOf = (graph) => graph.device_seconds ?? graph.seconds;
    this.table = new Table({
      label: "Graphs",
      columns: [
        { label: "Graph", kind: "id", value: (graph) => graph.number, cell: (graph) => String(graph.number) },
        { label: "From", kind: "path", value: (graph) => graph.function ?? "", cell: graphPlace },
        { label: "Operations", kind: "num", value: (graph) => graph.ops, cell: (graph) => number(graph.ops) },
        rows.some((graph) => graph.generated.length) && { label: "Kernels", kind: "num", value: kernelCount, cell: (graph) => (kernelCount(graph) === null ? "" : number(kernelCount(graph))) },
        ran && { label: "Runs", kind: "num", value: (graph) => graph.runs, cell: (graph) => (graph.runs === null ? "" : number(graph.runs)) },
        ran && { label: "A run", kind: "num", title: "On the host", value: (graph) => (graph.runs ? graph.seconds / graph.runs : null), cell: (graph) => (graph.runs ? duration(graph.seconds / graph.runs) : "") },
        ran && { label: timed ? "In all, device" : "In all", kind: "num", value: inAllOf, cell: (graph) => duration(inAllOf(graph)) },
        { label: "Backend", kind: "num", title: "What the backend took to compile it", value: (graph) => graph.compile_seconds, cell: (graph) => duration(graph.compile_seconds) },
        { label: "Ended by", kind: "path", value: (graph) => (graph.ended_by ? placeKey(graph.ended_by) : null), cell: (graph) => (graph.ended_by ? placeLink(site(graph.ended_by)) : null) },
      ],
      rows,
      detail: (graph) => new GraphDetail(graph).node,
      key: (graph) => graph.index,
    });
    this.node = el("div", {}, this.table.node, cudaGraphs());
  }

  show([index]) {
    if (index !== undefined) this.table.reveal(Number(index));
  }
}

function kernelCount(graph) {
  const counts = graph.generated.map((made) => made.kernels.reduce((sum, kernel) => sum + kernel.calls, 0));
  return graph.generated.length ? counts.reduce((sum, count) => sum + count, 0) : null;
}

function graphPlace(graph) {
  return [
    el("span", { class: "place" }, graph.function ?? "a graph"),
    graph.site ? besideName(graph.site) : null,
  ];
}

/** One graph: a phase at a time, its kernels above the source on the left and the generated code on the right. */
class GraphDetail {
  constructor(graph) {
    this.graph = graph;
    this.phases = el("div", { class: "chips", role: "group", "aria-label": "Phase" });
    this.body = el("div");
    this.node = el("div", { class: "graph" }, this.facts(), this.phases, this.body);
    graph.generated.forEach((made) => this.phases.append(this.phaseButton(made)));
    this.phases.hidden = graph.generated.length < 2;
    this.choose(graph.generated[0] ?? null);
  }

  facts() {
    const { graph } = this;
    return facts([
      ["Compiled as", idList([graph.compile_id])],
      ["Inputs on", graph.devices.join(", ")],
      ["Split by DDP", graph.split_by_ddp.length ? `into ${graph.split_by_ddp.length} parts, of ${graph.split_by_ddp.join(", ")} operations` : null],
    ]);
  }

  phaseButton(made) {
    const attributes = { class: "chip", type: "button", "data-phase": made.phase, on: { click: () => this.choose(made) } };
    return el("button", attributes, made.phase, el("b", {}, number(made.kernels.length)));
  }

  choose(made) {
    this.phases.querySelectorAll("button").forEach((button) => button.setAttribute("aria-pressed", String(button.dataset.phase === made?.phase)));
    this.kernels = made ? new Map(made.kernels.map((kernel) => [kernel.name, kernel])) : new Map();
    this.source = el("div", { class: "code pane", tabindex: "0", role: "region", "aria-label": "source lines of the graph" }, this.sourceLines());
    this.generated = made?.code ? el("div", { class: "code pane", tabindex: "0", role: "region", "aria-label": "generated code" }, this.codeLines(made.code)) : null;
    replace(
      this.body,
      made ? phaseFacts(made) : null,
      made?.kernels.length ? this.kernelTable(made.kernels) : null,
      this.graph.stages.length ? section("Stages", this.stageTable()) : null,
      madeOf(report.compiles.find((frame) => frame.compile_id === this.graph.compile_id)),
      el("div", { class: this.generated ? "beside" : "beside alone" }, el("div", {}, el("h3", {}, "Source"), this.source), this.generated ? el("div", {}, el("h3", {}, "Generated code"), this.generated) : null),
      made && !made.code ? el("p", { class: "nothing" }, made.path ? `The generated code is in ${made.path}.` : "The generated code was not recorded.") : null,
    );
    if (this.generated) requestAnimationFrame(() => this.skipImports());
  }

  /** Generated code starts with a page of imports: the first kernel is what the reader wants to see. */
  skipImports() {
    const names = [...this.kernels.keys()];
    const first = this.codeText.findIndex((text) => names.some((name) => mentions(text, name)));
    scrollWithin(this.generated, this.generated.querySelectorAll(".line")[Math.max(first - 1, 0)], 0);
  }

  /** What became of each line: traced, after AOTAutograd and decompositions, as kernels. */
  stageTable() {
    const counts = (names) => Object.entries(names).map(([name, times]) => (times === 1 ? name : `${name} ${times}\u00d7`)).join("  ");
    const column = (label, title, key) => ({ label, title, kind: "wide mono", value: (stage) => counts(stage[key]) || null, cell: (stage) => counts(stage[key]) });
    return new Table({
      label: "Stages",
      columns: [
        { label: "Line", kind: "path", value: (stage) => (stage.line ? placeKey(stage.line) : null), cell: (stage) => (stage.line ? placeLink(site(stage.line)) : "no line") },
        column("Traced", "By Dynamo", "operations"),
        column("After AOTAutograd", "And decompositions", "operators"),
        column("Backward", "AOTAutograd's backward graph", "backward"),
        { label: "Kernels", kind: "mono", value: (stage) => stage.kernels.join(" "), cell: (stage) => stage.kernels.join("  ") },
      ],
      rows: this.graph.stages,
    }).node;
  }

  kernelTable(kernels) {
    const pick = (kernel) => el("button", { class: "link mono", type: "button", "data-kernel": kernel.name, on: { click: () => this.pick(kernel.name) } }, kernel.name);
    return new Table({
      label: "Kernels",
      columns: [
        { label: "Kernel", kind: "mono", value: (kernel) => kernel.name, cell: pick },
        { label: "Kind", kind: "what", value: (kernel) => kernel.kind, cell: (kernel) => tag(kernel.kind, kernel.kind, KERNEL_WORDS[kernel.kind]) },
        { label: "Calls", kind: "num", title: "In one run of the graph", value: (kernel) => kernel.calls, cell: (kernel) => number(kernel.calls) },
        { label: "Operators", kind: "wide mono", value: (kernel) => kernel.operators.join(" "), cell: (kernel) => kernel.operators.join("  ") },
        { label: "From", kind: "path", value: (kernel) => (kernel.lines[0] ? placeKey(kernel.lines[0]) : null), cell: kernelLines },
      ],
      rows: kernels,
    }).node;
  }

  /** The lines that the graph was traced from, with the names of the kernels that they went into. */
  sourceLines() {
    const byPlace = new Map();
    for (const [path, line] of this.graph.lines) byPlace.set(`${path}:${line}`, [path, line, []]);
    for (const kernel of this.kernels.values()) {
      for (const [path, line] of kernel.lines) {
        const key = `${path}:${line}`;
        if (!byPlace.has(key)) byPlace.set(key, [path, line, []]);
        const names = byPlace.get(key)[2];
        if (!names.includes(kernel.name)) names.push(kernel.name);
      }
    }
    const places = [...byPlace.values()].sort(([a, line], [b, other]) => a - b || line - other);
    if (!places.length) return nothing("torch did not tell the lines.");
    return places.map(([path, line, names], index) => {
      const title = places[index - 1]?.[0] === path ? null : el("div", { class: "file-name", title: page.paths[path] }, shortPath(path));
      return [title, this.sourceLine(path, line, names)];
    });
  }

  sourceLine(path, line, names) {
    const text = lineText(path, line) ?? "";
    const light = () => names.length && this.light(names, `${path}:${line}`);
    return el(
      "div",
      { class: "line", "data-place": `${path}:${line}`, on: names.length ? { click: light } : {} },
      el("a", { class: "no", href: `#source/${path}/${line}`, tabindex: "-1" }, String(line)),
      el("code", {}, painted(new Painter().line(text))),
      names.length ? el("button", { class: "kernels", type: "button", title: names.join("\n"), on: { click: (event) => { event.stopPropagation(); light(); } } }, counted(names.length, "kernel")) : null,
    );
  }

  codeLines(code) {
    const painter = new Painter(true);
    const lines = code.split("\n");
    const shown = el("div");
    paged(shown, lines, (text, index) => el("div", { class: "line" }, el("span", { class: "no" }, String(index + 1)), el("code", {}, painted(painter.line(text)))), undefined, 3000);
    this.codeText = lines;
    return shown;
  }

  /** Lights up a kernel: where it is in the generated code, and the lines that it comes from. */
  pick(name) {
    this.light([name], null);
  }

  light(names, place) {
    this.body.querySelectorAll(".lit").forEach((node) => node.classList.remove("lit"));
    this.body.querySelectorAll("[data-kernel]").forEach((button) => button.closest("tr").classList.toggle("lit", names.includes(button.dataset.kernel)));
    const places = place ? [place] : names.flatMap((name) => this.kernels.get(name).lines.map(([path, line]) => `${path}:${line}`));
    const source = [...this.source.querySelectorAll("[data-place]")].filter((row) => places.includes(row.dataset.place));
    source.forEach((row) => row.classList.add("lit"));
    if (!place) scrollWithin(this.source, source[0]);
    if (!this.generated) return;
    const rows = [...this.generated.querySelectorAll(".line")];
    const lit = rows.filter((_, index) => names.some((name) => mentions(this.codeText[index], name)));
    lit.forEach((row) => row.classList.add("lit"));
    scrollWithin(this.generated, lit[0]);
  }
}

const KERNEL_WORDS = {
  triton: "generated by Inductor for the GPU",
  cpp: "generated by Inductor for the CPU",
  extern: "a library's",
  fallback: "an operator that Inductor has no kernel for: torch's own eager one, or one of the program's own",
  other: "generated in another language, such as CUTLASS or Metal",
};

function mentions(text, name) {
  const at = text.indexOf(name);
  return at >= 0 && !/\w/.test(text[at + name.length] ?? "") && !/\w/.test(text[at - 1] ?? "");
}

/** Scrolls a box, not the page, until a row is at a part of its height. */
function scrollWithin(box, row, part = 0.25) {
  if (row) box.scrollTop += row.getBoundingClientRect().top - box.getBoundingClientRect().top - box.clientHeight * part;
}

function kernelLines(kernel) {
  const [first, ...rest] = kernel.lines;
  return first ? [placeLink(site(first)), rest.length ? el("span", { class: "in" }, `and ${counted(rest.length, "line")} more`) : null] : null;
}

function phaseFacts(made) {
  return facts([
    ["Operations", made.ops === null ? null : number(made.ops)],
    ["Keeps", made.saved.length ? folded(`${counted(made.saved.length, "value")} for its backward`, made.saved) : null],
  ]);
}

function cudaGraphs() {
  if (!report.cudagraph_skips.length) return null;
  const columns = [
    { label: "Why", kind: "wide", value: (skip) => skip.reason, cell: (skip) => skip.reason },
    { label: "At", kind: "path", value: (skip) => (skip.site ? placeKey(skip.site) : null), cell: (skip) => placeLink(site(skip.site)) },
    { label: "Times", kind: "num", value: (skip) => skip.count, cell: (skip) => `${number(skip.count)}\u00d7` },
    { label: "Compiled as", kind: "mono", value: (skip) => skip.compile_ids[0] ?? null, cell: (skip) => idList(skip.compile_ids, 4) },
  ];
  return section("Not run as CUDA graphs", new Table({ label: "CUDA graphs", columns, rows: report.cudagraph_skips }).node);
}
