/** What was exported, and what stood against it. */
class ExportsView {
  constructor() {
    this.rows = report.export_failures;
    this.rows.forEach((found, index) => (found.index = index));
    this.table = new Table({
      label: "What stands against exports",
      columns: [
        { label: "Where", kind: "path", value: (found) => placeKey(found.site), cell: breakPlace },
        { label: "What it does", kind: "what", value: (found) => found.label, cell: exportMark },
        { label: "Why", kind: "wide", value: (found) => found.why, cell: exportReason },
        { label: "Met", kind: "num", title: "How often exports met it", value: (found) => found.count, cell: (found) => `${number(found.count)}\u00d7` },
      ],
      rows: this.rows,
      detail: exportDetail,
      key: (found) => found.index,
    });
    this.every = new Table({
      label: "Exports",
      columns: [
        { label: "What", kind: "path", value: (one) => one.name, cell: (one) => [el("span", { class: "place" }, one.name), one.site ? besideName(one.site) : null] },
        { label: "How", kind: "what", value: (one) => one.how, cell: (one) => el("span", {}, one.how) },
        { label: "Result", kind: "what", value: (one) => one.result, cell: (one) => el("span", {}, one.result) },
        { label: "From", kind: "wide", value: (one) => (one.caller ? placeKey([one.caller[0], one.caller[1], 0]) : ""), cell: (one) => (one.caller ? callerLink(one.caller) : "") },
        { label: "Times", kind: "num", value: (one) => one.count, cell: (one) => number(one.count) },
        { label: "Operations", kind: "num", value: (one) => one.ops, cell: (one) => (one.ops === null ? "" : number(one.ops)) },
        { label: "Took", kind: "num", value: (one) => one.seconds, cell: (one) => duration(one.seconds) },
      ],
      rows: report.exports,
    });
    this.node = el(
      "div",
      {},
      this.rows.length ? this.table.node : null,
      report.exports.length ? section("Exports", this.every.node) : null,
    );
  }

  show([index]) {
    if (index !== undefined) this.table.reveal(Number(index));
  }
}

function exportMark(found) {
  return el("span", { class: "verdict raises" }, el("i", { class: "dot" }), found.label);
}

function exportReason(found) {
  const named = ruleWords(found.rule);
  return [named ? el("b", { class: "rule" }, named) : null, el("span", {}, found.why)];
}

function exportDetail(found) {
  return [
    excerpt(site(found.site), "raises"),
    facts([
      ["Why", told(found.why)],
      ["So", found.so],
      ["Instead", advice(found)],
      ["The way there", ...found.stack.map((caller) => el("span", { class: "item" }, callerLink(caller)))],
      ["Exported at", ...found.exports.map(({ caller }) => (caller ? el("span", { class: "item" }, callerLink(caller)) : null))],
      ["Torch says", found.text ? el("details", {}, el("summary", {}, "all of it"), el("div", { class: "ids" }, found.text)) : null],
    ]),
  ];
}
