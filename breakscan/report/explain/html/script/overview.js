const MANY_BREAKS = 20;
const MOST_GROUPS = 10;

/** How many breaks there are of each kind and in each file, and what they take; a click searches for those. */
function breakOverview(rows, choose) {
  if (rows.length < MANY_BREAKS) return null;
  const kind = (found) => ruleWords(found.rule) ?? found.gb_type;
  const file = (found) => shortPath(found.site[0]);
  return el("div", { class: "overview" }, groupTable("Kind", rows, kind, choose), groupTable("File", rows, file, choose));
}

function groupTable(label, rows, nameOf, choose) {
  const groups = new Map();
  for (const row of rows) {
    const name = nameOf(row);
    if (!groups.has(name)) groups.set(name, { name, sites: 0, seconds: 0 });
    groups.get(name).sites += 1;
    groups.get(name).seconds += inAll(row.price) ?? 0;
  }
  const all = [...groups.values()].sort((a, b) => b.seconds - a.seconds || b.sites - a.sites);
  const shown = all.slice(0, MOST_GROUPS);
  const cost = all.some((group) => group.seconds);
  const table = new Table({
    label: `Breaks by ${label.toLowerCase()}`,
    columns: [
      { label, kind: "path", cell: ({ name }) => el("button", { class: "group", type: "button", on: { click: () => choose(name) } }, breakable(name)) },
      { label: "Sites", kind: "num", cell: (group) => number(group.sites) },
      cost && { label: "In all", kind: "num", cell: (group) => (group.seconds ? duration(group.seconds) : "") },
    ],
    rows: shown,
  });
  const rest = all.length - shown.length;
  return el("div", {}, table.node, rest ? el("p", { class: "more" }, `and ${number(rest)} more`) : null);
}
