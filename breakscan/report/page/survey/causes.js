/** A table of what units have in common, each with a link to those units. */
class CommonView {
  constructor(label, rows, columns) {
    const counts = [
      { label: "Units", kind: "num", value: (row) => row.units, cell: (row) => number(row.units) },
      rows.some((row) => row.places) && { label: "Places", kind: "num", value: (row) => row.places, cell: (row) => number(row.places) },
    ];
    this.node = el("div", {}, new Table({ label, columns: [...columns, ...counts], rows }).node);
  }

  show() {}
}

function unitsLink(kind, value, words) {
  return el("a", { href: `#units/${kind}/${value}` }, words);
}

class CausesView extends CommonView {
  constructor() {
    const measured = survey.causes.some((cause) => cause.seconds !== null);
    super("Causes", survey.causes, [
      { label: "Cause", kind: "wide", value: (cause) => cause.name, cell: (cause) => (cause.of === "recompiles" ? cause.name : unitsLink(1, cause.number, cause.name)) },
      { label: "Of", value: (cause) => cause.of, cell: (cause) => cause.of },
      measured && { label: "Costs most in", kind: "num", title: "Units in which no other cause costs more", value: (cause) => cause.costs_most, cell: (cause) => number(cause.costs_most) },
      measured && { label: "Costs in all", kind: "num", title: "Of calls; of compiling for recompiles", value: (cause) => cause.seconds, cell: (cause) => duration(cause.seconds) },
    ]);
  }
}

class FilesView extends CommonView {
  constructor() {
    super("Files", survey.files, [
      { label: "File", kind: "path", value: (file) => survey.fileNames[file.number], cell: (file) => unitsLink(2, file.number, breakable(survey.fileNames[file.number])) },
      { label: "Rules", kind: "wide", value: (file) => file.rules.join(" "), cell: (file) => file.rules.join(", ") },
    ]);
  }
}

class PlacesView extends CommonView {
  constructor() {
    const rows = survey.places.map(([file, line, rule, units]) => ({ file, line, rule, units }));
    super("Places", rows, [
      { label: "Place", kind: "path", value: (place) => `${survey.fileNames[place.file]}:${place.line}`, cell: (place) => unitsLink(2, place.file, [breakable(survey.fileNames[place.file]), `:${place.line}`]) },
      { label: "Rule", value: (place) => place.rule, cell: (place) => place.rule ?? "" },
    ]);
  }
}

class EndingsView extends CommonView {
  constructor() {
    super("Why units did not run", survey.endings, [
      { label: "The last that it said", kind: "wide", value: (ending) => survey.said[ending.said], cell: (ending) => unitsLink(3, ending.said, survey.said[ending.said] || "nothing") },
      { label: "Status", value: (ending) => STATES[ending.status], cell: (ending) => STATES[ending.status] },
    ]);
  }
}
