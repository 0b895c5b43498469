const FEW_RECOMPILES = 30;

/** Recompiles as a tree: the call that led to them, what changed there, the functions that it compiled again. */
class RecompilesView {
  constructor() {
    this.causes = causesOf(report.recompiles);
    this.filter = new Filter({ placeholder: "Search guards, functions, files", changed: () => this.refresh() });
    this.texts = new Map(this.causes.map((cause) => [cause, causeText(cause)]));
    this.tree = el("div", { class: "tree" });
    this.node = el(
      "div",
      {},
      this.causes.length ? [this.filter.node, this.tree] : null,
      report.specialisations.length ? specialisations() : null,
    );
    this.refresh();
  }

  refresh() {
    const kept = this.causes.filter((cause) => this.filter.passes(this.texts.get(cause)));
    const triggers = byTrigger(kept);
    this.pages?.stop();
    this.tree.replaceChildren();
    const few = times(kept) <= FEW_RECOMPILES;
    this.pages = paged(this.tree, triggers, (trigger) => triggerNode(trigger, few), undefined, 50);
    if (!kept.length) this.tree.append(nothing("No recompile is like that."));
    replace(this.filter.count, `${counted(times(kept), "recompile")} from ${counted(kept.length, "cause")}`);
  }

  show([cause]) {
    if (cause === undefined) return;
    this.filter.clear();
    const triggers = byTrigger(this.causes);
    this.pages.reach(triggers.findIndex(({ causes }) => causes.some((one) => one.cause === Number(cause))));
    const node = this.tree.querySelector(`[data-cause="${Number(cause)}"]`);
    if (!node) return;
    node.open = true;
    node.parentElement.closest("details").open = true;
    node.scrollIntoView({ block: "start" });
    node.querySelector("summary").focus({ preventScroll: true });
  }
}

function times(causes) {
  return causes.reduce((sum, cause) => sum + cause.recompiles.length, 0);
}

/** The causes at each calling line, the lines with most recompiles first. */
function byTrigger(causes) {
  const groups = new Map();
  for (const cause of causes) {
    const { trigger } = cause.recompiles[0];
    const key = trigger ? `${trigger[0]}:${trigger[1]}` : "";
    if (!groups.has(key)) groups.set(key, { trigger, causes: [] });
    groups.get(key).causes.push(cause);
  }
  return [...groups.values()].sort((a, b) => times(b.causes) - times(a.causes));
}

function triggerNode({ trigger, causes }, open) {
  const [path, line] = trigger ?? [];
  const text = trigger ? lineText(path, line)?.trim() : null;
  return el(
    "details",
    { open: true, class: "trigger" },
    el(
      "summary",
      {},
      el("span", { class: "times" }, `${number(times(causes))}\u00d7`),
      trigger ? el("span", {}, "called from ", callerLink(trigger)) : "called from a line that was not recorded",
      text ? el("code", { class: "call" }, painted(new Painter().line(text))) : null,
    ),
    causes.map((cause) => causeNode(cause, open || causes.length === 1)),
  );
}

function causeNode({ cause, words, advice, recompiles }, open) {
  const [first] = recompiles;
  const named = ruleWords(first.rule);
  return el(
    "details",
    { open, class: "cause", "data-cause": cause },
    el(
      "summary",
      {},
      el("span", { class: "times" }, `${number(recompiles.length)}\u00d7`),
      el("span", { class: "words" }, words),
      named ? el("b", { class: "rule" }, named) : null,
    ),
    advice ? facts([["Instead", told(advice)]]) : null,
    el("table", { class: "list" }, recompileHead(), el("tbody", {}, recompiles.map(recompileRow))),
  );
}

function recompileHead() {
  const labels = ["Function", "Guard that failed", "Compiled for", "Came", "Asked for at", "Compiled as"];
  return el("thead", {}, el("tr", {}, labels.map((label) => el("th", { scope: "col" }, label))));
}

function recompileRow(recompile) {
  return el(
    "tr",
    {},
    el("td", { class: "path", "data-label": "Function" }, recompile.function ?? "a function"),
    el("td", { class: "mono", "data-label": "Guard that failed" }, recompile.guard),
    el("td", { class: "mono old", "data-label": "Compiled for" }, recompile.old),
    el("td", { class: "mono new", "data-label": "Came" }, recompile.new),
    el("td", { "data-label": "Asked for at" }, placeLink(site(recompile.site))),
    el("td", { class: "mono", "data-label": "Compiled as" }, recompile.compile_id),
  );
}

function causeText({ words, recompiles }) {
  const parts = recompiles.flatMap((recompile) => [
    recompile.function, recompile.guard, recompile.old, recompile.new, recompile.compile_id, placeKey(recompile.site),
    recompile.trigger ? placeKey(recompile.trigger) : null,
  ]);
  return [words, ...parts].filter(Boolean).join(" ").toLowerCase();
}

/** Sizes that were dynamic until the code turned them into constants. */
function specialisations() {
  const rows = report.specialisations;
  const table = new Table({
    label: "Dynamic sizes that became constants",
    columns: [
      { label: "Size of", kind: "path", value: (found) => found.sources[0] ?? "", cell: (found) => el("code", {}, found.sources.join(", ")) },
      { label: "Became", kind: "num", value: (found) => found.value, cell: (found) => found.value },
      { label: "At", kind: "path", value: (found) => (found.site ? placeKey(found.site) : null), cell: (found) => [placeLink(site(found.site)), found.function ? el("span", { class: "in" }, found.function) : null] },
      { label: "Why", kind: "wide", value: (found) => found.reason, cell: (found) => found.reason },
      { label: "Compiled as", kind: "mono", value: (found) => found.compile_id, cell: (found) => found.compile_id },
    ],
    rows,
  });
  return section("Dynamic sizes that became constants", table.node);
}
