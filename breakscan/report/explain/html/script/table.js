/**
 * A table that sorts by any column, pages, and opens a row to what `detail` gives.
 *
 * Columns: `label`, `value(row)` to sort by, `cell(row)` to show, `kind` (`num`, `path`, `wide`), `title`.
 */
class Table {
  constructor({ label, columns, rows, detail = null, sort = null, key = (row) => row }) {
    this.columns = columns.filter(Boolean);
    this.detail = detail;
    this.key = key;
    this.opened = new Set();
    this.rows = rows;
    this.sorting = sort;
    this.body = el("tbody");
    this.headers = this.columns.map((column) => this.header(column));
    this.node = el(
      "table",
      { class: detail ? "list opens" : "list", "aria-label": label },
      el("thead", {}, el("tr", {}, this.headers)),
      this.body,
    );
    this.draw();
  }

  header(column) {
    const button = el("button", { type: "button", title: column.title, on: { click: () => this.sortBy(column) } }, column.label);
    return el("th", { scope: "col", class: column.kind }, column.value ? button : column.label);
  }

  sortBy(column) {
    const again = this.sorting?.column === column;
    this.sorting = { column, down: again ? !this.sorting.down : column.kind === "num" };
    this.draw();
  }

  /** Shows these rows from now on. */
  update(rows) {
    this.rows = rows;
    this.draw();
  }

  draw() {
    this.columns.forEach((column, index) => {
      const way = this.sorting?.column === column ? (this.sorting.down ? "descending" : "ascending") : null;
      if (way) this.headers[index].setAttribute("aria-sort", way);
      else this.headers[index].removeAttribute("aria-sort");
    });
    this.pages?.stop();
    this.body.replaceChildren();
    this.sorted = this.sorting ? sorted(this.rows, this.sorting) : this.rows;
    const foot = (button) => el("tr", { class: "foot" }, el("td", { colspan: this.columns.length }, button));
    this.pages = paged(this.body, this.sorted, (row) => this.group(row), foot);
  }

  /** A row, and behind it what it opens to. */
  group(row) {
    const rows = document.createDocumentFragment();
    const line = el("tr", { "data-key": this.detail ? String(this.key(row)) : null });
    this.columns.forEach((column, index) => {
      const cell = el("td", { class: column.kind, "data-label": column.label }, column.cell(row));
      if (this.detail && index === 0) cell.prepend(this.opener(line, row));
      line.append(cell);
    });
    if (this.detail) line.addEventListener("click", (event) => this.clicked(event, line, row));
    rows.append(line);
    if (this.opened.has(this.key(row))) this.open(line, row);
    return rows;
  }

  opener(line, row) {
    const toggle = (event) => {
      event.stopPropagation();
      this.toggle(line, row);
    };
    return el("button", { class: "opener", type: "button", "aria-expanded": "false", "aria-label": "details", on: { click: toggle } });
  }

  clicked(event, line, row) {
    const selecting = String(window.getSelection()) !== "";
    if (!selecting && !event.target.closest("a, button, input")) this.toggle(line, row);
  }

  toggle(line, row) {
    if (line.classList.contains("open")) this.close(line, row);
    else this.open(line, row);
  }

  open(line, row) {
    this.opened.add(this.key(row));
    line.classList.add("open");
    line.querySelector(".opener").setAttribute("aria-expanded", "true");
    line.after(el("tr", { class: "detail" }, el("td", { colspan: this.columns.length }, this.detail(row))));
  }

  close(line, row) {
    this.opened.delete(this.key(row));
    line.classList.remove("open");
    line.querySelector(".opener").setAttribute("aria-expanded", "false");
    line.nextElementSibling.remove();
  }

  /** Opens a row and brings it into view; false where the table does not show it. */
  reveal(key) {
    const index = this.sorted.findIndex((row) => this.key(row) === key);
    if (index < 0) return false;
    this.pages.reach(index);
    const line = [...this.body.children].find((child) => child.dataset.key === String(key));
    if (!line.classList.contains("open")) this.open(line, this.sorted[index]);
    line.scrollIntoView({ block: "start" });
    line.querySelector(".opener").focus({ preventScroll: true });
    return true;
  }
}

function sorted(rows, { column, down }) {
  const values = rows.map((row) => [column.value(row), row]);
  const order = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : collator.compare(String(a), String(b)));
  values.sort(([a], [b]) => {
    // What has no value comes last, whichever way.
    if (a === null || b === null) return (a === null) - (b === null);
    return down ? order(b, a) : order(a, b);
  });
  return values.map(([, row]) => row);
}

/** A search field and sets of choices above a list; `changed` hears of every change. */
class Filter {
  constructor({ placeholder, choices = [], changed }) {
    this.changed = changed;
    this.left = new Map(choices.map(({ name }) => [name, new Set()]));
    this.search = el("input", {
      type: "search",
      placeholder,
      "aria-label": placeholder,
      spellcheck: "false",
      autocomplete: "off",
      on: { input: () => this.changed() },
    });
    this.count = el("span", { class: "count", role: "status" });
    const groups = choices.filter(({ options }) => options.length > 1).map((choice) => this.group(choice));
    this.node = el("div", { class: "filter", role: "search" }, this.search, groups, this.count);
  }

  group({ name, label, options }) {
    return el("span", { class: "chips", role: "group", "aria-label": label }, options.map((option) => this.chip(name, option)));
  }

  chip(name, { value, label, count, kind }) {
    const toggle = (event) => {
      const out = this.left.get(name);
      const drop = !out.has(value);
      drop ? out.add(value) : out.delete(value);
      event.currentTarget.setAttribute("aria-pressed", String(!drop));
      this.changed();
    };
    return el(
      "button",
      { class: `chip ${kind ?? ""}`, type: "button", "aria-pressed": "true", "data-value": value, on: { click: toggle } },
      kind ? el("i", { class: "dot" }) : null,
      label,
      el("b", {}, number(count)),
    );
  }

  /** Whether a row passes: all words, and all phrases in quotes, are in its text, and none of its choices is switched off. */
  passes(text, chosen = {}) {
    const words = (this.search.value.toLowerCase().match(/"[^"]*"?|[^\s"]+/g) ?? []).map((word) => word.replaceAll('"', ""));
    if (Object.entries(chosen).some(([name, value]) => this.left.get(name).has(value))) return false;
    return words.every((word) => text.includes(word));
  }

  /** Searches for these words as they are. */
  look(words) {
    this.search.value = `"${words}"`;
    this.changed();
    this.search.scrollIntoView({ block: "nearest" });
  }

  clear() {
    this.search.value = "";
    this.left.forEach((out) => out.clear());
    this.node.querySelectorAll(".chip").forEach((chip) => chip.setAttribute("aria-pressed", "true"));
    this.changed();
  }
}

/** Choices for a filter, in a given order, with how many rows have each. */
function options(rows, value, words, kinds = false) {
  const counts = totals(rows.map((row) => [value(row), 1]));
  return Object.entries(words)
    .filter(([key]) => counts.has(key))
    .map(([key, word]) => ({ value: key, label: word.word ?? word, count: counts.get(key), kind: kinds ? key : null }));
}

/** Sums values by key. */
function totals(pairs) {
  const sums = new Map();
  for (const [key, value] of pairs) sums.set(key, (sums.get(key) ?? 0) + value);
  return sums;
}
