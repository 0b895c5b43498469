/** Functions that were to be compiled and are not, unless a break reported elsewhere is the cause. */
class FramesView {
  constructor() {
    this.rows = unexplained();
    this.rows.forEach((frame, index) => (frame.index = index));
    this.table = new Table({
      label: "Functions that are not compiled",
      columns: [
        { label: "Function", kind: "path", value: (frame) => frame.function, cell: framePlace },
        { label: "What became of it", kind: "what", value: (frame) => frame.label, cell: frameStatus },
        { label: "Why", kind: "wide", value: (frame) => frame.reason, cell: breakOrFrameReason },
        { label: "Times", kind: "num", value: (frame) => frame.count, cell: (frame) => `${number(frame.count)}\u00d7` },
      ],
      rows: this.rows,
      detail: frameDetail,
      key: (frame) => frame.index,
    });
    this.node = el("div", {}, this.table.node);
  }

  show([index]) {
    if (index !== undefined) this.table.reveal(Number(index));
  }
}

const FRAME_KINDS = { eager: "eager", raised: "raises", "passed-over": "plain" };

function frameStatus(frame) {
  return el("span", { class: `verdict ${FRAME_KINDS[frame.status]}` }, el("i", { class: "dot" }), frame.label);
}

function framePlace(frame) {
  return [
    el("span", { class: "place" }, frame.rest_only ? `the rest of ${frame.function}` : frame.function),
    ownerTag(frame.origin),
    besideName(frame.site),
  ];
}

function breakOrFrameReason(frame) {
  const named = ruleWords(frame.rule);
  return [named ? el("b", { class: "rule" }, named) : null, el("span", {}, frame.reason)];
}

function frameDetail(frame) {
  const place = site(frame.failed_at ?? frame.site);
  const header = { ...place, endLine: place.line, endColumn: 1 + (lineText(place.path, place.line) ?? "").length };
  return [excerpt(header, FRAME_KINDS[frame.status], 1), frameFacts(frame)];
}
