/** A table of problems of any kind. */
class ProblemsView {
  constructor(label, rows) {
    rows.forEach((found, index) => (found.index = index));
    this.table = new Table({
      label,
      columns: [
        { label: "Where", kind: "path", value: (found) => found.functions[0] ?? "", cell: problemPlace },
        { label: "What", value: (found) => found.what, cell: (found) => el("span", {}, found.what) },
        { label: "Times", kind: "num", value: (found) => found.count, cell: (found) => number(found.count) },
        { label: "Why", kind: "wide", value: (found) => found.why, cell: (found) => el("span", {}, found.why) },
      ],
      rows,
      detail: problemDetail,
      key: (found) => found.index,
    });
    this.node = el("div", {}, this.table.node);
  }

  show([index]) {
    if (index !== undefined) this.table.reveal(Number(index));
  }
}

/** What the compiler does not report: calls that go around it, caches, checkpoints, loops. */
class AroundView extends ProblemsView {
  constructor() {
    super("Around the compiler", report.around.filter((found) => !found.cause));
  }
}

function problemPlace(found) {
  return [el("span", { class: "place" }, found.functions[0] ?? ""), ownerTag(found.origin), besideName(found.site)];
}

function problemDetail(found) {
  return [
    found.code ? excerpt(site(found.site), found.verdict ?? "splits") : null,
    facts([
      ["Why", told(found.why)],
      ["So", told(found.consequences.join(" "))],
      ["Instead", told(found.remedies[0]?.text)],
      ["Called from", ...found.called_from.map((caller) => el("span", { class: "item" }, callerLink(caller)))],
    ]),
  ];
}
