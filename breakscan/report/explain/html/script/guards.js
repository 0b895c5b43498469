const FEW_GUARDS = 8;

/** What each compiled function checks before it runs, and the lines that ask for it. */
class GuardsView {
  constructor() {
    const rows = guarded();
    this.table = new Table({
      label: "Guards of compiled functions",
      columns: [
        { label: "Function", kind: "path", value: (frame) => frame.function, cell: compiledPlace },
        { label: "Guards", kind: "num", value: (frame) => frame.guard_count, cell: (frame) => (frame.guard_count === null ? "" : number(frame.guard_count)) },
        { label: "To check", kind: "num", title: "At each call", value: (frame) => frame.guard_seconds, cell: (frame) => duration(frame.guard_seconds) },
        { label: "Compiled as", kind: "mono", value: (frame) => frame.compile_id, cell: (frame) => frame.compile_id },
      ],
      rows,
      detail: guardDetail,
      key: (frame) => frame.compile_id,
    });
    this.node = el("div", {}, this.table.node);
  }

  show() {}
}

/** The compilations with guards, the slowest to check first. */
function guarded() {
  const cost = (frame) => frame.guard_seconds ?? frame.guard_count ?? 0;
  return report.compiles.filter((frame) => frame.guard_count || frame.guards.length).sort((a, b) => cost(b) - cost(a));
}

function compiledPlace(frame) {
  return [
    el("span", { class: "place" }, frame.rest_only ? `the rest of ${frame.function}` : frame.function),
    ownerTag(frame.origin),
    besideName(frame.site),
  ];
}

/** The guards of a frame by the line that asks for them. */
function guardDetail(frame) {
  const list = el("div", { class: "guards" });
  const texts = new Map(frame.guards.map((guard) => [guard, guardText(guard)]));
  let pages = null;
  const filter = new Filter({ placeholder: "Search these guards", changed: () => draw() });

  function draw() {
    const kept = frame.guards.filter((guard) => filter.passes(texts.get(guard)));
    pages?.stop();
    list.replaceChildren();
    pages = paged(list, guardGroups(kept), guardGroup, undefined, 60);
    const checked = frame.guard_count > frame.guards.length ? `, of ${number(frame.guard_count)} that are checked` : "";
    replace(filter.count, counted(kept.length, "guard") + checked);
  }

  draw();
  return [filter.node, list];
}

function guardText([kind, text, place]) {
  return `${kind} ${text} ${place ? placeKey(place) : ""}`.toLowerCase();
}

function guardGroups(guards) {
  const groups = new Map();
  for (const guard of guards) {
    const key = guard[2] ? `${guard[2][0]}:${guard[2][1]}` : "";
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(guard);
  }
  return [...groups.values()].sort((a, b) => !a[0][2] - !b[0][2] || b.length - a.length);
}

function guardGroup(guards) {
  const place = site(guards[0][2]);
  const text = place ? lineText(place.path, place.line)?.trim() : null;
  const items = el("ul");
  paged(items, guards, ([kind, words]) => el("li", {}, el("span", { class: "kind" }, kind), el("code", {}, words)), (button) => el("li", { class: "foot" }, button), FEW_GUARDS, false);
  return el(
    "div",
    { class: "guard-group" },
    el("div", { class: "asks" }, place ? placeLink(place) : "without a line", text ? el("code", {}, painted(new Painter().line(text))) : null),
    items,
  );
}
