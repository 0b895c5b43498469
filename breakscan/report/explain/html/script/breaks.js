/** The table of breaks: the dearest first, where prices are known. */
class BreaksView {
  constructor() {
    const rows = inOrder(report.breaks);
    this.rows = rows;
    this.texts = new Map(rows.map((found) => [found, breakText(found)]));
    this.filter = new Filter({
      placeholder: "Search files, functions, rules, reasons",
      choices: [
        { name: "verdict", label: "What it does", options: options(rows, (found) => found.verdict, VERDICTS, true) },
        { name: "origin", label: "Whose code", options: options(rows, (found) => found.origin, ORIGINS) },
      ],
      changed: () => this.refresh(),
    });
    const columns = breakColumns(rows);
    const dearest = columns.find((column) => column.label === "In all");
    this.table = new Table({
      label: "Graph breaks",
      columns,
      rows,
      detail: breakDetail,
      sort: dearest ? { column: dearest, down: true } : null,
      key: (found) => found.index,
    });
    this.none = nothing("No break is like that.");
    const overview = breakOverview(rows, (words) => this.filter.look(words));
    this.node = el("div", {}, overview, this.filter.node, this.table.node, this.none);
    this.refresh();
  }

  refresh() {
    const kept = this.rows.filter((found) =>
      this.filter.passes(this.texts.get(found), { verdict: found.verdict, origin: found.origin }),
    );
    this.table.update(kept);
    this.none.hidden = kept.length > 0;
    const all = this.rows.length;
    replace(this.filter.count, kept.length === all ? counted(all, "site") : `${number(kept.length)} of ${counted(all, "site")}`);
  }

  show([index]) {
    if (index === undefined) return;
    if (!this.table.reveal(Number(index))) {
      this.filter.clear();
      this.table.reveal(Number(index));
    }
  }
}

/** Yours first, then libraries, then torch; worse verdicts first. */
function inOrder(breaks) {
  const origins = Object.keys(ORIGINS);
  const rank = (found) => origins.indexOf(found.origin) * 10 - VERDICTS[found.verdict].rank;
  return [...breaks].sort((a, b) => rank(a) - rank(b));
}

function breakColumns(rows) {
  const priced = rows.some((found) => found.price?.passes);
  return [
    { label: "Where", kind: "path", value: (found) => placeKey(found.site), cell: (found) => breakPlace(found) },
    { label: "What it does", kind: "what", value: (found) => -VERDICTS[found.verdict].rank, cell: (found) => verdictMark(found.verdict) },
    { label: "Why", kind: "wide", value: (found) => ruleWords(found.rule) ?? found.reason, cell: breakReason },
    { label: "Met", kind: "num", title: "How often the compiler met it", value: (found) => found.count, cell: (found) => `${number(found.count)}\u00d7` },
    priced && { label: "Passes", kind: "num", title: "How often the program ran through it", value: (found) => found.price?.passes ?? null, cell: (found) => (found.price?.passes ? number(found.price.passes) : "") },
    priced && { label: "A pass", kind: "num", title: "Time between the graph before it and the next one, each time: on the host, or on the device where the host waits for it", value: (found) => (found.price ? passSeconds(found.price) : null), cell: (found) => (found.price?.passes ? duration(passSeconds(found.price)) : "") },
    priced && { label: "In all", kind: "num", title: "That time over the whole run", value: (found) => inAll(found.price), cell: (found) => duration(inAll(found.price)) },
  ];
}

function placeKey([path, line, column]) {
  return `${page.paths[path]}:${line}:${column}`;
}

function breakPlace(found) {
  return [
    el("span", { class: "place", title: page.paths[found.site[0]] }, breakable(`${shortPath(found.site[0])}:${found.site[1]}`)),
    ownerTag(found.origin),
    found.function ? el("span", { class: "in" }, found.function) : null,
  ];
}

function breakReason(found) {
  const named = ruleWords(found.rule);
  return [named ? el("b", { class: "rule" }, named) : null, el("span", {}, named ? page.rules[found.rule].summary : found.reason)];
}

function breakDetail(found) {
  return [excerpt(site(found.site), found.verdict), breakFacts(found)];
}

function breakText(found) {
  const words = [
    placeKey(found.site), found.function, ruleWords(found.rule), found.gb_type, found.gb_id, found.reason, found.advice,
    VERDICTS[found.verdict].word, ...found.compile_ids,
  ];
  return words.filter(Boolean).join(" ").toLowerCase();
}
