/** What the compiler does not report: calls that go around it, caches, checkpoints, loops. */
class AroundView {
  constructor() {
    this.rows = report.around.filter((found) => !found.cause);
    this.rows.forEach((found, index) => (found.index = index));
    this.table = new Table({
      label: "Around the compiler",
      columns: [
        { label: "Where", kind: "path", value: (found) => found.functions[0] ?? "", cell: aroundPlace },
        { label: "What", value: (found) => found.what, cell: (found) => el("span", {}, found.what) },
        { label: "Times", kind: "num", value: (found) => found.count, cell: (found) => number(found.count) },
        { label: "Why", kind: "wide", value: (found) => found.why, cell: (found) => el("span", {}, found.why) },
      ],
      rows: this.rows,
      detail: aroundDetail,
      key: (found) => found.index,
    });
    this.node = el("div", {}, this.table.node);
  }

  show([index]) {
    if (index !== undefined) this.table.reveal(Number(index));
  }
}

function aroundPlace(found) {
  return [el("span", { class: "place" }, found.functions[0] ?? ""), ownerTag(found.origin), besideName(found.site)];
}

function aroundDetail(found) {
  return facts([
    ["Why", told(found.why)],
    ["So", told(found.consequences.join(" "))],
    ["Instead", told(found.remedies[0]?.text)],
    ["Called from", found.called_from[0] ? callerLink(found.called_from[0]) : null],
  ]);
}
