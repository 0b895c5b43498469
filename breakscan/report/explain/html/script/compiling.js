/** What compiling cost: as a flame graph, by function, by line, by kernel, and what the caches had. */
class CompilingView {
  constructor() {
    const rows = report.compiles;
    this.most = Math.max(...rows.map((frame) => frame.seconds + frame.backward_seconds), 1e-9);
    const backward = rows.some((frame) => frame.backward_seconds);
    const total = { label: "In all", kind: "num bars", value: (frame) => frame.seconds + frame.backward_seconds, cell: (frame) => [bar((frame.seconds + frame.backward_seconds) / this.most), amount(frame.seconds + frame.backward_seconds)] };
    this.table = new Table({
      label: "Compilations",
      columns: [
        { label: "Function", kind: "path", value: (frame) => frame.function, cell: compiledPlace },
        { label: "Compiled as", kind: "mono", value: (frame) => frame.compile_id, cell: (frame) => frame.compile_id },
        { label: "Began at", kind: "num", value: (frame) => frame.at, cell: (frame) => `${frame.at.toFixed(2)} s` },
        backward && { label: "Backward", kind: "num", title: "Compiled later, part of what it took in all", value: (frame) => frame.backward_seconds, cell: (frame) => (frame.backward_seconds ? duration(frame.backward_seconds) : "") },
        total,
        { label: "Caches", kind: "what", value: (frame) => cacheWords(frame) || null, cell: cacheTags },
      ],
      rows,
      detail: compileDetail,
      sort: { column: total, down: true },
      key: (frame) => frame.compile_id,
    });
    const hasTime = rows.some((frame) => frame.time.length);
    this.flame = hasTime ? new FlameGraph(rows) : null;
    const ofRank = report.ranks ? ` on rank ${report.ranks.ranks[0]}` : "";
    const flame = this.flame ? section(`Where compile time went${ofRank}`, this.flame.node) : phaseSummary(rows);
    this.node = el("div", {}, flame, rows.length ? section("By function", this.table.node) : null, kernelTimes(), targets());
  }

  show() {}
}

/** The Triton kernels whose times torch tells. */
function kernelTimes() {
  const { kernels } = report.compile_time;
  if (!kernels.length) return null;
  const columns = [
    { label: "Kernel", kind: "mono", value: (kernel) => kernel.name, cell: (kernel) => kernel.name },
    { label: "Compiled in", kind: "num", value: (kernel) => kernel.seconds, cell: (kernel) => duration(kernel.seconds) },
    { label: "Autotuned in", kind: "num", value: (kernel) => kernel.autotuning_seconds, cell: (kernel) => (kernel.autotuning_seconds ? duration(kernel.autotuning_seconds) : "") },
    { label: "Lines", kind: "path", cell: (kernel) => kernel.lines.map((line, index) => [index ? ", " : null, placeLink(site(line))]) },
  ];
  return section("Kernels, by what compiling them took", new Table({ label: "Kernel times", columns, rows: kernels }).node);
}

/** The longest phases over all functions. */
function phaseSummary(rows) {
  const spent = [...totals(rows.flatMap((frame) => Object.entries(frame.phases)))].sort((a, b) => b[1] - a[1]);
  if (!spent.length) return null;
  return section("By phase", el("p", { class: "nothing" }, "Phases overlap: the longer ones hold the shorter ones."), phaseBars(spent.slice(0, 12)));
}

function phaseBars(spent) {
  const most = spent[0]?.[1] || 1;
  return el(
    "table",
    { class: "list phases", "aria-label": "Phases" },
    el("tbody", {}, spent.map(([name, seconds]) => el("tr", {}, el("td", { class: "mono" }, name), el("td", { class: "num bars" }, bar(seconds / most), amount(seconds))))),
  );
}

function amount(seconds) {
  return el("span", { class: "amount" }, duration(seconds));
}

function compileDetail(frame) {
  const spent = Object.entries(frame.phases).sort((a, b) => b[1] - a[1]);
  return [
    facts([
      ["Failed", frame.failed],
      ["Started over", frame.restarts.length ? el("ul", {}, frame.restarts.map((why_) => el("li", {}, why_))) : null],
      ["Caches", frame.caches.length ? el("ul", {}, frame.caches.map((use) => el("li", {}, `${use.cache}: ${use.outcome}${use.reason ? `, ${use.reason}` : ""}`))) : null],
      ["At", placeLink(site(frame.site))],
    ]),
    spent.length ? phaseBars(spent) : null,
    madeOf(frame),
  ];
}

/** The Python that Dynamo made of a function, around its graph. */
function madeOf(frame) {
  if (!frame?.made.length) return null;
  const painter = new Painter();
  const gutter = (place) => (place ? el("a", { class: "no", href: `#source/${place[0]}/${place[1]}`, tabindex: "-1" }, String(place[1])) : el("span", { class: "no" }));
  const lines = frame.made.map(({ text, site: place, note }) => el("div", { class: "line" }, gutter(place), el("code", {}, painted(painter.line(note ? `${text}  # ${note}` : text)))));
  return section("Python that Dynamo made of it", el("div", { class: "code pane", tabindex: "0", role: "region", "aria-label": "Python that Dynamo made" }, lines));
}

function cacheWords(frame) {
  return frame.caches.map((use) => `${use.cache} ${use.outcome}`).join(" ");
}

function cacheTags(frame) {
  const failed = frame.failed ? tag("failed", "eager") : null;
  const uses = totals(frame.caches.map((use) => [`${use.cache} ${use.outcome}`, 1]));
  return [failed, [...uses].map(([words, times_]) => tag(times_ > 1 ? `${words} ${times_}\u00d7` : words, words.split(" ").pop()))];
}

/** What torch.compile was asked for. */
function targets() {
  if (!report.targets.length) return null;
  const columns = [
    { label: "Function or module", kind: "path", value: (target) => target.name, cell: (target) => el("span", { class: "place" }, target.name) },
    { label: "Asked for at", kind: "path", value: (target) => (target.caller ? placeKey(target.caller) : null), cell: (target) => (target.caller ? callerLink(target.caller) : null) },
    { label: "", kind: "wide", cell: (target) => (target.attempted ? null : tag("never called", "splits")) },
  ];
  return section("What torch.compile was asked for", new Table({ label: "Targets", columns, rows: report.targets }).node);
}
