/** What was exported, and what stood against it. */
class ExportsView {
  constructor() {
    this.problems = new ProblemsView("What stands against exports", report.export_problems);
    this.every = new Table({
      label: "Exports",
      columns: [
        { label: "What", kind: "path", value: (one) => one.name, cell: (one) => [el("span", { class: "place" }, one.name), one.site ? besideName(one.site) : null] },
        { label: "How", kind: "what", value: (one) => one.how, cell: (one) => el("span", {}, one.how) },
        { label: "Result", kind: "what", value: (one) => one.status, cell: (one) => el("span", {}, one.status) },
        { label: "From", kind: "wide", value: (one) => (one.caller ? placeKey([one.caller[0], one.caller[1], 0]) : ""), cell: (one) => (one.caller ? callerLink(one.caller) : "") },
        { label: "Times", kind: "num", value: (one) => one.count, cell: (one) => number(one.count) },
        { label: "Operations", kind: "num", value: (one) => one.ops, cell: (one) => (one.ops === null ? "" : number(one.ops)) },
        { label: "Took", kind: "num", value: (one) => one.seconds, cell: (one) => duration(one.seconds) },
      ],
      rows: report.exports,
    });
    this.node = el("div", {}, report.export_problems.length ? this.problems.node : null, report.exports.length ? section("Exports", this.every.node) : null);
  }

  show(place) {
    this.problems.show(place);
  }
}
