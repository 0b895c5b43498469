/** Where the ranks of a distributed run differ, side by side. */
class RanksView {
  constructor() {
    const { ranks: recorded, world_size: size, endings, differences } = report.ranks;
    const ranks = [...new Set([...recorded, ...Object.keys(endings).map(Number)])].sort((a, b) => a - b);
    const missing = size - recorded.length;
    const head = el("tr", {}, el("th", { scope: "col" }, "What"), ranks.map((rank) => el("th", { scope: "col" }, `rank ${rank}`)));
    const rows = [rankRow("how it ended", null, endings, ranks), ...differences.map((found) => rankRow(found.what, site(found.site), found.by_rank, ranks))];
    this.node = el(
      "div",
      {},
      el("p", { class: "lead" }, differences.length ? `The ranks differ in ${counted(differences.length, "point")}.` : "The ranks did the same.", missing > 0 ? ` ${counted(missing, "rank")} of ${size} left no recording.` : ""),
      el("div", { class: "scroll" }, el("table", { class: "list ranks", "aria-label": "Ranks" }, el("thead", {}, head), el("tbody", {}, rows))),
    );
  }

  show() {}
}

function rankRow(what, place, byRank, ranks) {
  const said = ranks.map((rank) => byRank[rank] ?? "");
  const usual = usualOf(said);
  return el(
    "tr",
    {},
    el("th", { scope: "row" }, what, place ? el("span", { class: "in" }, placeLink(place)) : null),
    said.map((words) => el("td", { class: usual === null || words === usual ? "" : "differs" }, words)),
  );
}

/** What most say; null where there is no saying which of them stray. */
function usualOf(words) {
  const [most, next] = [...totals(words.map((word) => [word, 1]))].sort((a, b) => b[1] - a[1]);
  return next && next[1] === most[1] ? null : most[0];
}
