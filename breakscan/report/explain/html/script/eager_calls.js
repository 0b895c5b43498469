/** Calls of what was compiled that used no compiled code. */
class EagerCallsView {
  constructor() {
    this.rows = report.eager_calls;
    this.rows.forEach((found, index) => (found.index = index));
    this.table = new Table({
      label: "Calls that ran eager",
      columns: [
        { label: "Function", kind: "path", value: (found) => found.function, cell: eagerCallsPlace },
        { label: "Calls", kind: "num", value: (found) => found.calls, cell: (found) => number(found.calls) },
        { label: "Of", kind: "num", title: "Calls in which nothing was compiled", value: (found) => found.of, cell: (found) => number(found.of) },
        { label: "Why", kind: "wide", value: (found) => found.reason, cell: (found) => el("span", {}, found.reason) },
      ],
      rows: this.rows,
      detail: eagerCallsDetail,
      key: (found) => found.index,
    });
    this.node = el("div", {}, this.table.node);
  }

  show([index]) {
    if (index !== undefined) this.table.reveal(Number(index));
  }
}

function eagerCallsPlace(found) {
  return [el("span", { class: "place" }, found.function), ownerTag(found.origin), besideName(found.site)];
}

function eagerCallsDetail(found) {
  return facts([
    ["Why", told(found.reason)],
    ["Instead", told(found.advice)],
    ["Called from", found.caller ? callerLink(found.caller) : null],
  ]);
}
