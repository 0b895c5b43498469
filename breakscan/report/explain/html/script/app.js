/** The tabs: those without anything to show are left out; those of what was found come in the order of the report. */
function tabList() {
  const { breaks, recompiles, specialisations: sizes, graphs, compiles, ranks, notices } = report;
  const failures = report.export_problems;
  const loose = unexplained();
  const around = report.around.filter((found) => !found.cause);
  const tabs = [
    { id: "breaks", label: "Breaks", count: breaks.length, view: BreaksView, has: breaks.length },
    { id: "frames", label: "Not compiled", count: loose.length, view: FramesView, has: loose.length },
    { id: "around", label: "Around the compiler", count: around.length, view: AroundView, has: around.length },
    { id: "exports", label: "Exports", count: failures.length, view: ExportsView, has: failures.length + report.exports.length },
    { id: "recompiles", label: "Recompiles", count: recompiles.length, view: RecompilesView, has: recompiles.length + sizes.length },
    { id: "source", label: "Source", view: SourceView, has: Object.keys(page.sources).length },
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

/** The page as it runs, for whoever looks into it with the tools of the browser. */
var app = null;

function start() {
  try {
    loadReport();
    replace(document.getElementById("calls"), page.times.map((said) => el("p", {}, said)), callBars());
    document.getElementById("tools").append(themeButton());
    app = new App(tabList());
  } catch (error) {
    // A report of which a part is broken still shows its tables.
    document.documentElement.classList.remove("js");
    throw error;
  }
}

document.addEventListener("DOMContentLoaded", start);
