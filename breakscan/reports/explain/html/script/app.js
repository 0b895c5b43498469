/** The tabs: those without anything to show are left out; those of what was found come in the order of the report. */
function tabList() {
  const { breaks, recompiles, specialisations: sizes, graphs, runs, compiles, ranks, notices } = report;
  const failures = report.export_failures;
  const loose = unexplained();
  const tabs = [
    { id: "breaks", label: "Breaks", count: breaks.length, view: BreaksView, has: breaks.length },
    { id: "frames", label: "Not compiled", count: loose.length, view: FramesView, has: loose.length },
    { id: "eager", label: "Ran eager", count: report.eager_calls.length, view: EagerCallsView, has: report.eager_calls.length },
    { id: "exports", label: "Exports", count: failures.length, view: ExportsView, has: failures.length + report.exports.length },
    { id: "recompiles", label: "Recompiles", count: recompiles.length, view: RecompilesView, has: recompiles.length + sizes.length },
    { id: "source", label: "Source", view: SourceView, has: Object.keys(page.sources).length },
    { id: "timeline", label: "Timeline", view: TimelineView, has: runs.length + compiles.length },
    { id: "graphs", label: "Graphs", count: graphs.length, view: GraphsView, has: graphs.length },
    { id: "guards", label: "Guards", view: GuardsView, has: guarded().length },
    { id: "compiling", label: "Compile time", view: CompilingView, has: compiles.length + report.targets.length },
    { id: "ranks", label: "Ranks", count: ranks?.differences.length, view: RanksView, has: ranks },
    { id: "notes", label: "Notes", count: notices.length, view: NotesView, has: notices.length },
  ];
  const shown = tabs.filter((tab) => tab.has);
  const first = page.order.map((id) => shown.find((tab) => tab.id === id)).filter(Boolean);
  return [...first, ...shown.filter((tab) => !first.includes(tab))];
}

class NotesView {
  constructor() {
    this.node = el("ul", { class: "notes" }, report.notices.map((notice) => el("li", {}, sentence(notice))));
  }

  show() {}
}

/** Shows a tab at a time; `#tab/argument/...` in the address says which, so that every place has a link. */
class App {
  constructor() {
    this.tabs = tabList();
    this.nav = document.getElementById("tabs");
    this.main = document.getElementById("main");
    this.buttons = new Map(this.tabs.map((tab) => [tab.id, this.button(tab)]));
    this.panels = new Map();
    this.nav.setAttribute("role", "tablist");
    this.nav.setAttribute("aria-label", "Parts of the report");
    this.nav.append(...this.buttons.values());
    this.nav.addEventListener("keydown", (event) => this.walk(event));
    window.addEventListener("hashchange", () => this.route());
    document.addEventListener("keydown", (event) => this.shortcut(event));
    this.route();
  }

  button({ id, label, count }) {
    return el(
      "button",
      { id: `tab-${id}`, type: "button", role: "tab", "aria-controls": `panel-${id}`, on: { click: () => this.go(id) } },
      label,
      count ? el("b", {}, number(count)) : null,
    );
  }

  /** At once: what is pressed next must meet the new tab, and a changed hash is told of only later. */
  go(id) {
    history.pushState(null, "", `#${id}`);
    this.route();
  }

  route() {
    const [id, ...rest] = location.hash.slice(1).split("/");
    const tab = this.tabs.find((one) => one.id === id) ?? this.tabs[0];
    if (tab) this.show(tab, rest.filter((part) => /^\d+$/.test(part)));
  }

  show(tab, rest) {
    for (const [id, button] of this.buttons) {
      button.setAttribute("aria-selected", String(id === tab.id));
      button.tabIndex = id === tab.id ? 0 : -1;
    }
    for (const [id, { panel }] of this.panels) panel.hidden = id !== tab.id;
    if (!this.panels.has(tab.id)) this.panels.set(tab.id, this.build(tab));
    const { view, panel } = this.panels.get(tab.id);
    panel.hidden = false;
    this.nav.querySelector("[aria-selected=true]").scrollIntoView({ block: "nearest", inline: "nearest" });
    view.show(rest);
  }

  build(tab) {
    const view = new tab.view();
    const panel = el("div", { id: `panel-${tab.id}`, class: "panel", role: "tabpanel", "aria-labelledby": `tab-${tab.id}` }, view.node);
    this.main.append(panel);
    return { view, panel };
  }

  /** Arrow keys walk along the tabs. */
  walk(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const at = this.tabs.findIndex(({ id }) => this.buttons.get(id) === document.activeElement);
    if (!step || at < 0) return;
    event.preventDefault();
    const next = this.tabs[(at + step + this.tabs.length) % this.tabs.length];
    this.buttons.get(next.id).focus();
    this.go(next.id);
  }

  /** A slash goes to the search field. */
  shortcut(event) {
    const typing = event.target.closest?.("input, textarea, select");
    if (event.key === "Escape" && typing) typing.blur();
    if (event.key !== "/" || typing || event.ctrlKey || event.metaKey) return;
    const field = this.main.querySelector(".panel:not([hidden]) input[type=search]");
    if (field) {
      event.preventDefault();
      field.focus();
      field.select();
    }
  }
}

/** Where the time of steady calls goes, as one bar a compiled function. */
function callBars() {
  const steady = report.calls.filter((call) => call.calls).sort((a, b) => b.seconds - a.seconds).slice(0, 4);
  return steady.map((call) => {
    const other = Math.max(call.seconds - call.graph_seconds - call.gap_seconds, 0);
    const parts = [["graph", "in graphs", call.graph_seconds], ["gap", "behind breaks", call.gap_seconds], ["other", "elsewhere", other]].filter(([, , seconds]) => seconds > 0);
    return el(
      "div",
      { class: "call" },
      el("span", { class: "name" }, call.name),
      el("span", { class: "each" }, `${duration(call.seconds / call.calls)} a call, ${counted(call.calls, "call")}`),
      el("span", { class: "split", "aria-hidden": "true" }, parts.map(([kind, , seconds]) => grown(el("i", { class: kind }), seconds / call.seconds))),
      el("span", { class: "parts" }, parts.map(([kind, words, seconds]) => el("span", { class: kind }, el("i", { class: "dot" }), `${duration(seconds / call.calls)} ${words}`))),
    );
  });
}

function grown(node, part) {
  node.style.flexGrow = String(part);
  return node;
}

const THEME = "breakscan-theme";

/** Light or dark as the system has it, until the reader says otherwise. */
function themeButton() {
  const root = document.documentElement;
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const shown = () => root.dataset.theme ?? (dark.matches ? "dark" : "light");
  const button = el("button", { id: "theme", type: "button", on: { click: () => set(shown() === "dark" ? "light" : "dark", true) } }, themeIcon());

  function set(theme, keep) {
    if (theme) root.dataset.theme = theme;
    button.setAttribute("aria-label", `Show ${shown() === "dark" ? "light" : "dark"}`);
    button.title = button.getAttribute("aria-label");
    if (keep) remember(theme);
    document.dispatchEvent(new Event("theme"));
  }

  dark.addEventListener("change", () => set(null));
  set(rememberedTheme());
  return button;
}

function themeIcon() {
  const icon = svg("svg", { viewBox: "0 0 16 16", width: 16, height: 16, "aria-hidden": "true" });
  icon.append(svg("circle", { cx: 8, cy: 8, r: 6.25, fill: "none", stroke: "currentColor", "stroke-width": 1.5 }), svg("path", { d: "M8 1.75a6.25 6.25 0 0 1 0 12.5z", fill: "currentColor" }));
  return icon;
}

// Storage may be forbidden: the choice then lasts as long as the page.
function remember(theme) {
  try {
    localStorage.setItem(THEME, theme);
  } catch {}
}

function rememberedTheme() {
  try {
    const theme = localStorage.getItem(THEME);
    return ["light", "dark"].includes(theme) ? theme : null;
  } catch {
    return null;
  }
}

/** The page as it runs, for whoever looks into it with the tools of the browser. */
var app = null;

function start() {
  try {
    loadReport();
    replace(document.getElementById("calls"), page.costs.map((said) => el("p", {}, said)), callBars());
    document.getElementById("tools").append(themeButton());
    app = new App();
  } catch (error) {
    // A report of which a part is broken still shows its tables.
    document.documentElement.classList.remove("js");
    throw error;
  }
}

document.addEventListener("DOMContentLoaded", start);
