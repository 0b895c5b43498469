const PARTS = { dynamo: "Dynamo", aot_autograd: "AOTAutograd", inductor: "Inductor" };

/** What compiling cost: by part of the compiler, by function, and what the caches had. */
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
    const ofRank = report.ranks ? ` on rank ${report.ranks.ranks[0]}` : "";
    const parts = partBars(report.compile_time.parts);
    this.node = el("div", {}, parts && section(`Where compile time went${ofRank}`, parts), rows.length ? section("By function", this.table.node) : null, targets());
  }

  show() {}
}

/** The seconds of each part of the compiler, which do not overlap; null without any. */
function partBars(parts) {
  const spent = Object.entries(parts);
  if (!spent.length) return null;
  return el(
    "table",
    { class: "list spent", "aria-label": "Parts of the compiler" },
    el("tbody", {}, spent.map(([part, seconds]) => el("tr", {}, el("td", {}, PARTS[part]), el("td", { class: "num bars" }, bar(seconds / spent[0][1]), amount(seconds))))),
  );
}

function amount(seconds) {
  return el("span", { class: "amount" }, duration(seconds));
}

function compileDetail(frame) {
  return [
    facts([
      ["Failed", frame.failed],
      ["Started over", frame.restarts.length ? el("ul", {}, frame.restarts.map((why_) => el("li", {}, why_))) : null],
      ["Caches", frame.caches.length ? el("ul", {}, frame.caches.map((use) => el("li", {}, `${use.cache}: ${use.outcome}${use.reason ? `, ${use.reason}` : ""}`))) : null],
      ["At", placeLink(site(frame.site))],
    ]),
    partBars(frame.parts),
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
