const FOLD_OVER = 400;
const FOLD_KEEPS = 12;
const MOST_LINES_AT_ONCE = 4000;

/** The files of the program with what happened at their lines in the gutter. */
class SourceView {
  constructor() {
    this.marks = marksByFile();
    this.traced = tracedLines();
    this.files = filesInOrder(this.marks);
    this.search = el("input", { type: "search", placeholder: "Search files", "aria-label": "Search files", spellcheck: "false", on: { input: () => this.list() } });
    this.names = el("ul", { class: "files" });
    this.code = el("div", { class: "code file", tabindex: "0", role: "region", "aria-label": "source" });
    this.title = el("div", { class: "file-title" });
    this.node = el(
      "div",
      { class: "source" },
      el("div", { class: "side" }, this.files.length > 8 ? this.search : null, this.names),
      el("div", { class: "pane" }, this.title, this.code),
    );
    this.file = null;
    this.list();
  }

  show([path, line]) {
    const wanted = path === undefined ? (this.file ?? this.files[0]) : Number(path);
    if (wanted === undefined) return;
    if (wanted !== this.file) this.openFile(wanted);
    if (line !== undefined) this.reveal(Number(line));
  }

  list() {
    const words = this.search.value.toLowerCase();
    const kept = this.files.filter((path) => page.paths[path].toLowerCase().includes(words));
    this.pages?.stop();
    this.names.replaceChildren();
    this.pages = paged(this.names, kept, (path) => this.name(path), (button) => el("li", {}, button));
    if (!kept.length) this.names.append(el("li", {}, nothing("No file is called that.")));
  }

  name(path) {
    const marks = this.marks.get(path) ?? [];
    const counts = totals(marks.map(({ kind, weight }) => [kind, weight]));
    const badges = [...counts].map(([kind, count]) => el("span", { class: `badge ${kind}`, title: MARK_WORDS[kind] }, number(count)));
    const folder = shortPath(path).split("/").slice(0, -1).join("/");
    return el(
      "li",
      {},
      el(
        "a",
        { href: `#source/${path}`, title: page.paths[path], "aria-current": path === this.file ? "true" : null, "data-path": path },
        el("span", { class: "name" }, fileName(path)),
        el("span", { class: "badges" }, badges),
        el("span", { class: "folder" }, folder),
      ),
    );
  }

  openFile(path) {
    this.file = path;
    this.names.querySelectorAll("a").forEach((link) => {
      if (link.dataset.path === String(path)) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    });
    const marks = this.marks.get(path) ?? [];
    const segments = segmentsOf(path);
    const part = segments.length > 1 || segments[0]?.[0] > 1 ? "only the lines that the report speaks of" : "";
    replace(this.title, el("span", { class: "place", title: page.paths[path] }, shortPath(path)), el("span", { class: "count" }, part), legend(marks));
    this.code.classList.toggle("priced", marks.some((mark) => inAll(mark.price)));
    this.byLine = new Map();
    for (const mark of marks) this.byLine.set(mark.line, [...(this.byLine.get(mark.line) ?? []), mark]);
    this.draw(path);
  }

  draw(path) {
    this.lines = new Map();
    this.code.replaceChildren();
    this.code.scrollTop = 0;
    const parts = document.createDocumentFragment();
    let last = 0;
    for (const [first, lines] of segmentsOf(path)) {
      if (first > last + 1) parts.append(el("div", { class: "fold" }, last ? "\u22ef" : ""));
      parts.append(...this.segment(path, first, lines));
      last = first + lines.length - 1;
    }
    if (!last) parts.append(nothing("The file could not be read when the report was written."));
    this.code.append(parts);
  }

  /** The lines of a segment.  Of long ones, what lies far from any mark is folded. */
  segment(path, first, lines) {
    const painter = new Painter();
    const pieces = lines.map((text) => painter.line(text));
    const row = (index) => this.line(path, first + index, lines[index], pieces[index]);
    const shown = shownRanges(first, lines.length, [...this.byLine.keys()]);
    const nodes = [];
    let at = 0;
    for (const [from, to] of [...shown, [lines.length, lines.length]]) {
      if (from > at) nodes.push(this.fold(at, from, row));
      for (let index = from; index < to; index += 1) nodes.push(row(index));
      at = to;
    }
    return nodes;
  }

  fold(from, to, row) {
    const open = (event) => {
      const end = Math.min(from + MOST_LINES_AT_ONCE, to);
      const rows = Array.from({ length: end - from }, (_, index) => row(from + index));
      event.currentTarget.replaceWith(...rows, ...(end < to ? [this.fold(end, to, row)] : []));
    };
    const attributes = { class: "fold", type: "button", "data-from": from, "data-to": to, on: { click: open } };
    return el("button", attributes, `\u22ef ${counted(to - from, "line")}`);
  }

  line(path, number_, text, pieces) {
    const marks = this.byLine.get(number_) ?? [];
    const spans = (this.marks.get(path) ?? [])
      .filter((mark) => mark.line <= number_ && number_ <= mark.place.endLine && mark.underlined)
      .map((mark) => ({ ...columnsOn(mark.place, number_, text), kind: mark.kind }));
    const row = el(
      "div",
      { class: `line ${marks.length ? `marked ${marks[0].kind}` : ""} ${this.traced.has(`${path}:${number_}`) ? "traced" : ""}`, "data-line": number_ },
      el("span", { class: "no" }, String(number_)),
      el("span", { class: "gutter" }, marks.length ? this.button(marks, number_) : null),
      el("code", {}, painted(pieces, spans)),
    );
    this.lines.set(number_, row);
    return row;
  }

  button(marks, line) {
    const price = marks.map((mark) => inAll(mark.price)).filter(Boolean).reduce((sum, seconds) => sum + seconds, 0);
    const words = marks.map((mark) => MARK_WORDS[mark.kind]).filter((word, index, all) => all.indexOf(word) === index);
    return el(
      "button",
      {
        class: `mark ${marks[0].kind}`,
        type: "button",
        "aria-expanded": "false",
        "aria-label": `line ${line}: ${words.join(", ")}`,
        title: words.join(", "),
        on: { click: (event) => this.toggle(event.currentTarget, marks) },
      },
      price ? el("span", { class: "price" }, duration(price)) : null,
      el("i", { class: "dot" }),
      el("b", {}, number(marks.reduce((sum, mark) => sum + mark.weight, 0))),
    );
  }

  toggle(button, marks) {
    const row = button.closest(".line");
    const open = button.getAttribute("aria-expanded") === "true";
    button.setAttribute("aria-expanded", String(!open));
    if (open) row.nextElementSibling.remove();
    else row.after(el("div", { class: "card" }, marks.map((mark) => mark.card())));
  }

  reveal(line) {
    if (!this.lines.has(line)) this.unfold(line);
    const row = this.lines.get(line);
    if (!row) return;
    this.code.querySelectorAll(".line.here").forEach((one) => one.classList.remove("here"));
    row.classList.add("here");
    const button = row.querySelector(".mark");
    if (button?.getAttribute("aria-expanded") === "false") button.click();
    row.scrollIntoView({ block: "center" });
  }

  unfold(line) {
    for (const fold of this.code.querySelectorAll("button.fold")) {
      fold.click();
      if (this.lines.has(line)) return;
    }
  }
}

const MARK_WORDS = {
  raises: "raises",
  eager: "runs eager",
  splits: "splits the graph",
  recompiled: "recompiled",
  plain: "nothing to compile",
  constant: "a dynamic size became a constant",
};
const MARK_ORDER = Object.keys(MARK_WORDS);

/** By file, what happened at which line: the worst of a line first. */
function marksByFile() {
  const marks = new Map();
  const put = (kind, packed, weight, price, underlined, card) => {
    const place = site(packed);
    if (!marks.has(place.path)) marks.set(place.path, []);
    marks.get(place.path).push({ kind, place, line: place.line, weight, price, underlined, card });
  };
  for (const found of report.breaks) {
    put(found.verdict, found.site, found.count, found.price, true, () => card(found.verdict, MARK_WORDS[found.verdict], ruleWords(found.rule), breakFacts(found)));
  }
  for (const frame of unexplained()) {
    const kind = FRAME_KINDS[frame.status];
    put(kind, frame.site, frame.count, frame.price, false, () => card(kind, frame.label, ruleWords(frame.rule), frameFacts(frame)));
  }
  for (const cause of causesOf(report.recompiles)) {
    const [first] = cause.recompiles;
    put("recompiled", first.site, cause.recompiles.length, null, true, () => card("recompiled", "recompiled", ruleWords(first.rule), recompileFacts(cause)));
  }
  for (const found of report.specialisations) {
    if (!found.site) continue;
    const words = facts([["Size of", found.sources.join(", ")], ["Became", found.value], ["Why", sentence(found.reason)]]);
    put("constant", found.site, 1, null, true, () => card("constant", MARK_WORDS.constant, null, words));
  }
  marks.forEach((list) => list.sort((a, b) => MARK_ORDER.indexOf(a.kind) - MARK_ORDER.indexOf(b.kind)));
  return marks;
}

function card(kind, word, rule, content) {
  return el("article", {}, el("h3", { class: `verdict ${kind}` }, el("i", { class: "dot" }), word, rule ? el("b", { class: "rule" }, rule) : null), content);
}

/** The lines that became operations of a graph. */
function tracedLines() {
  const told = Object.entries(report.traced).flatMap(([path, lines]) => lines.map((line) => `${path}:${line}`));
  return new Set([...told, ...report.graphs.flatMap((graph) => graph.lines.map(([path, line]) => `${path}:${line}`))]);
}

/** Files that can be shown first, of them those with marks: the user's own, then those with most marks. */
function filesInOrder(marks) {
  const weight = (path) => (marks.get(path) ?? []).reduce((sum, mark) => sum + mark.weight, 0);
  const installed = (path) => page.paths[path] !== shortPath(path);
  const known = Object.keys(page.sources).map(Number);
  const all = [...new Set([...marks.keys(), ...known])];
  const lost = (path) => !page.sources[path];
  return all.sort((a, b) => lost(a) - lost(b) || !weight(a) - !weight(b) || installed(a) - installed(b) || weight(b) - weight(a));
}

function legend(marks) {
  const kinds = MARK_ORDER.filter((kind) => marks.some((mark) => mark.kind === kind));
  return el(
    "span",
    { class: "legend" },
    kinds.map((kind) => el("span", { class: `verdict ${kind}` }, el("i", { class: "dot" }), MARK_WORDS[kind])),
    el("span", { class: "verdict traced" }, el("i", { class: "dot" }), "in a graph"),
  );
}

/** Which lines of a segment to show, as ranges of indices from 0. */
function shownRanges(first, length, marked) {
  if (length <= FOLD_OVER) return [[0, length]];
  const near = marked.filter((line) => line >= first && line < first + length).sort((a, b) => a - b);
  if (!near.length) return [[0, FOLD_OVER]];
  const ranges = [];
  for (const line of near) {
    const from = Math.max(line - first - FOLD_KEEPS, 0);
    const to = Math.min(line - first + FOLD_KEEPS + 1, length);
    const last = ranges[ranges.length - 1];
    if (last && from <= last[1] + FOLD_KEEPS) last[1] = Math.max(to, last[1]);
    else ranges.push([from, to]);
  }
  return ranges;
}
