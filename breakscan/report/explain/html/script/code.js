const KEYWORDS = new Set(
  (
    "False None True and as assert async await break class continue def del elif else except finally for from global " +
    "if import in is lambda match nonlocal not or pass raise return try while with yield"
  ).split(" "),
);
const CPP_WORDS = new Set(
  "auto bool char const constexpr double extern float inline int int64_t long static template using void".split(" "),
);
const TOKEN =
  /(#.*$)|([rbfu]{0,2}(?:"""|'''))|([rbfu]{0,2}(?:"(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\])*'?))|(@[\w.]+)|(\b\d[\w.]*)|([A-Za-z_]\w*)|(\s+|[^\s\w])/giu;
const LONGEST_LINE = 2000;

/**
 * Splits lines into `[kind, text]` pieces for colouring.  It keeps the quote that is open over the end of a line;
 * generated code has whole kernels in quotes, which are better read as code.
 */
class Painter {
  constructor(generated = false) {
    this.generated = generated;
    this.quote = null;
  }

  line(text) {
    const cut = text.length > LONGEST_LINE ? `${text.slice(0, LONGEST_LINE)}\u2026` : text;
    if (this.generated && /^\s*(\/\/|#)/.test(cut)) return [["c", cut]];
    const pieces = [];
    let rest = cut;
    if (this.quote) {
      const end = rest.indexOf(this.quote);
      if (end < 0) return [["s", rest]];
      pieces.push(["s", rest.slice(0, end + 3)]);
      rest = rest.slice(end + 3);
      this.quote = null;
    }
    this.tokens(rest, pieces);
    return pieces;
  }

  tokens(text, pieces) {
    TOKEN.lastIndex = 0;
    let found;
    while (TOKEN.lastIndex < text.length && (found = TOKEN.exec(text))) {
      const [all, comment, triple, string, decorator, digitsFound, word] = found;
      if (triple && !this.generated) {
        const end = text.indexOf(triple.slice(-3), TOKEN.lastIndex);
        if (end < 0) {
          this.quote = triple.slice(-3);
          pieces.push(["s", text.slice(found.index)]);
          return;
        }
        pieces.push(["s", text.slice(found.index, end + 3)]);
        TOKEN.lastIndex = end + 3;
        continue;
      }
      pieces.push([this.kind(comment, string || triple, decorator, digitsFound, word), all]);
    }
  }

  kind(comment, string, decorator, digitsFound, word) {
    if (comment) return "c";
    if (string) return "s";
    if (decorator) return "d";
    if (digitsFound) return "n";
    return word && (KEYWORDS.has(word) || (this.generated && CPP_WORDS.has(word))) ? "k" : "";
  }
}

/** Pieces as nodes, with the columns from `start` to `end` (from 0, end excluded) underlined. */
function painted(pieces, spans = []) {
  const nodes = [];
  let at = 0;
  for (const [kind, text] of pieces) {
    for (const [from, to, span] of cuts(at, at + text.length, spans)) {
      const part = text.slice(from - at, to - at);
      const names = [kind && `t-${kind}`, span && `span ${span}`].filter(Boolean).join(" ");
      nodes.push(names ? el("span", { class: names }, part) : document.createTextNode(visible(part)));
    }
    at += text.length;
  }
  return nodes;
}

/** The parts of a range, each with the class of the first span that covers it. */
function cuts(from, to, spans) {
  const edges = new Set([from, to]);
  for (const { start, end } of spans) {
    if (start > from && start < to) edges.add(start);
    if (end > from && end < to) edges.add(end);
  }
  const sorted = [...edges].sort((a, b) => a - b);
  return sorted.slice(1).map((edge, index) => {
    const first = sorted[index];
    const over = spans.find(({ start, end }) => start <= first && edge <= end);
    return [first, edge, over?.kind];
  });
}

/** The columns that a site takes of a line: `{start, end}` from 0; null where it does not touch it. */
function columnsOn(place, line, text) {
  if (line < place.line || line > place.endLine) return null;
  const start = line === place.line ? place.column - 1 : text.length - text.trimStart().length;
  const end = line === place.endLine ? place.endColumn - 1 : text.trimEnd().length;
  return { start: Math.min(start, text.length), end: Math.max(end, start + 1) };
}

/** A few lines around a site, which is underlined; null where the page does not have them. */
function excerpt(place, kind, around = 2) {
  const last = Math.min(place.endLine, place.line + 6);
  const rows = [];
  const painter = new Painter();
  for (let line = place.line - around; line <= last + around; line += 1) {
    const text = lineText(place.path, line);
    const edge = line === place.line - around || line === last + around;
    if (text === null || (edge && !text.trim())) continue;
    const span = columnsOn(place, line, text);
    rows.push(
      el(
        "div",
        { class: span ? "line here" : "line" },
        el("span", { class: "no" }, String(line)),
        el("code", {}, painted(painter.line(text), span ? [{ ...span, kind }] : [])),
      ),
    );
  }
  if (!rows.length) return null;
  const code = el("div", { class: "code", tabindex: "0", role: "region", "aria-label": "code" }, rows);
  return el("div", { class: "excerpt" }, code, el("a", { class: "whole", href: `#source/${place.path}/${place.line}` }, "in Source"));
}
