const STATES = {
  ok: "whole",
  broken: "breaks or runs eager",
  failed: "failed",
  missing: "lacks a package",
  crashed: "crashed",
  timeout: "timeout",
  memory: "out of memory",
  skipped: "skipped",
  fault: "fault",
  waiting: "waiting",
};

/** All units, with filters.  `#units/1/N` shows those with a cause, `#units/2/N` those that break in a file, `#units/3/N`
 * those that said the same last. */
class UnitsView {
  constructor() {
    const numbers = (names) => Object.fromEntries(names.map((name, index) => [index, name || "no conditions"]));
    this.filter = new Filter({
      placeholder: "Search units, rules, files, errors",
      choices: [
        { name: "state", label: "Status", options: options(survey.units, (unit) => unit.state, STATES, true) },
        { name: "conditions", label: "Conditions", options: options(survey.units, (unit) => String(unit.conditions), numbers(survey.conditions)) },
        { name: "torch", label: "torch", options: options(survey.units, (unit) => String(unit.torch), numbers(survey.versions)) },
      ],
      changed: () => this.draw(),
    });
    this.selects = [
      this.select("Any rule", survey.causeNames, (unit) => unit.causes),
      this.select("Any file", survey.fileNames, (unit) => unit.files),
      this.select("Any last line", survey.said, (unit) => (unit.status === "ok" ? [] : [unit.last])),
    ];
    this.filter.count.before(...this.selects.map(({ node }) => node).filter(Boolean));
    this.table = new Table({
      label: "Units",
      columns: unitColumns(),
      rows: survey.units,
      detail: unitDetail,
      key: (unit) => unit.index,
    });
    this.node = el("div", {}, this.filter.node, this.table.node, (this.nothing = el("p", { class: "nothing", hidden: true }, "No unit is like that.")));
    this.draw();
  }

  /** A field that chooses one of what the units have, the most frequent first; none where there is no choice. */
  select(label, names, values) {
    const counts = [...totals(survey.units.flatMap((unit) => values(unit).map((value) => [value, 1])))].sort((a, b) => b[1] - a[1]);
    if (!counts.length) return { node: null, passes: () => true, choose: () => {} };
    const node = el(
      "select",
      { "aria-label": label, on: { change: () => this.draw() } },
      el("option", { value: "" }, label),
      counts.map(([value, count]) => el("option", { value }, `${short(names[value])} (${number(count)})`)),
    );
    return {
      node,
      passes: (unit) => node.value === "" || values(unit).includes(Number(node.value)),
      choose: (value) => (node.value = value),
    };
  }

  /** What an address of the page asks for. */
  show([kind, value]) {
    if (kind === undefined) return;
    this.filter.clear();
    this.selects.forEach((select, index) => select.choose(index + 1 === Number(kind) ? value : ""));
    this.draw();
  }

  draw() {
    const rows = survey.units.filter(
      (unit) =>
        this.filter.passes(unit.text, { state: unit.state, conditions: String(unit.conditions), torch: String(unit.torch) }) &&
        this.selects.every((select) => select.passes(unit)),
    );
    this.table.update(rows);
    this.nothing.hidden = rows.length > 0;
    const all = counted(survey.units.length, "unit");
    replace(this.filter.count, rows.length === survey.units.length ? all : `${number(rows.length)} of ${all}`);
  }
}

function short(text) {
  return text.length > 70 ? `${text.slice(0, 69)}\u2026` : text || "nothing";
}

/** Those for which some unit has a value. */
function unitColumns() {
  const count = (label, name, title) => ({ label, kind: "num", title, value: (unit) => unit[name], cell: (unit) => (unit[name] === null ? "" : number(unit[name])) });
  const has = (name) => survey.units.some((unit) => unit[name] !== null);
  return [
    { label: "Unit", kind: "path", value: (unit) => unit.name, cell: (unit) => breakable(unit.name) },
    { label: "Conditions", value: (unit) => survey.conditions[unit.conditions], cell: (unit) => survey.conditions[unit.conditions] },
    survey.versions.length > 1 && { label: "torch", value: (unit) => survey.versions[unit.torch], cell: (unit) => survey.versions[unit.torch] },
    { label: "Status", value: (unit) => STATES[unit.state], cell: (unit) => el("span", { class: `verdict ${unit.state}` }, el("i", { class: "dot" }), STATES[unit.state]) },
    count("Breaks", "breaks", "Places that break the graph"),
    count("Eager", "eager", "Functions that run eager"),
    count("Recompiles", "recompiles"),
    count("Graphs", "graphs"),
    has("costliest") && { label: "Takes", kind: "num", title: "The time between graphs and in eager functions, in all calls", value: (unit) => unit.cost, cell: (unit) => duration(unit.cost) },
    has("compile") && { label: "Compile", kind: "num", value: (unit) => unit.compile, cell: (unit) => duration(unit.compile) },
    has("peak") && { label: "Memory", kind: "num", value: (unit) => unit.peak, cell: (unit) => (unit.peak === null ? "" : bytes(unit.peak)) },
    has("findings") && { label: "Check", kind: "num", title: "Findings, and those of rules that the run showed too", value: (unit) => unit.findings, cell: (unit) => (unit.findings === null ? "" : unit.seen ? `${number(unit.findings)}, ${number(unit.seen)} seen` : number(unit.findings)) },
    has("offered") && count("Fix", "offered", "Findings that fix can take away"),
    has("proved") && count("Proved", "proved", "Changes that verify accepted"),
    has("speed") && { label: "Speed", kind: "num", title: "Beside eager", value: (unit) => unit.speed, cell: (unit) => (unit.speed === null ? "" : `${unit.speed.toFixed(2)}\u00d7`) },
  ];
}

function unitDetail(unit) {
  const links = (kind, numbers, names) => numbers.map((at) => el("p", {}, el("a", { href: `#units/${kind}/${at}` }, names[at] || "no rule knows why")));
  const said = survey.said[unit.said];
  return el(
    "div",
    {},
    unit.costliest === null ? null : el("p", {}, `${survey.causeNames[unit.costliest]} costs most.`),
    links(1, unit.causes, survey.causeNames),
    links(2, unit.files, survey.fileNames),
    said ? el("pre", { class: "said" }, said) : null,
    unit.causes.length || said ? null : el("p", { class: "nothing" }, "Nothing breaks."),
  );
}
