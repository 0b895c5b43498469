const ROW = 20;
const AXIS = 24;
const GUTTER = 190;
const MOST_GRAPH_ROWS = 40;
const CLOSEST = 1e-7;

/**
 * What was compiled and what ran, over time, on a canvas: rows of blocks that do not overlap, each row sorted, so that
 * what is in sight is found by bisection and blocks narrower than a pixel are drawn once.
 */
class TimelineView {
  constructor() {
    this.rows = timelineRows();
    const ends = this.rows.flatMap((row) => row.items.slice(-1).map((item) => item.to));
    const starts = this.rows.flatMap((row) => row.items.slice(0, 1).map((item) => item.from));
    this.all = { from: Math.min(...starts, 0), to: Math.max(...ends, 1e-6) };
    this.view = { ...this.all };
    this.canvas = el("canvas", {
      tabindex: "0",
      role: "img",
      "aria-label": `Timeline: ${counted(report.compiles.length, "compilation")}, ${counted(report.runs.length, "run")} of graphs. Arrow keys move, plus and minus zoom, Home shows all.`,
    });
    this.tip = el("div", { class: "tip", hidden: true });
    this.told = el("div", { class: "told", role: "status" });
    this.box = el("div", { class: "timeline" }, this.canvas, this.tip);
    this.node = el("div", {}, this.tools(), this.box, this.told);
    this.listen();
  }

  tools() {
    const button = (label, action, title) => el("button", { class: "tool", type: "button", title, on: { click: action } }, label);
    const steady = this.steady();
    return el(
      "div",
      { class: "filter" },
      button("All", () => this.go(this.all), "Home"),
      steady ? button("After compiling", () => this.go(steady)) : null,
      button("+", () => this.zoom(0.5), "+"),
      button("\u2212", () => this.zoom(2), "-"),
      el("span", { class: "count" }, "Drag to move, Ctrl and wheel to zoom, click a block for more"),
    );
  }

  /** The time after the last compilation, where graphs ran then. */
  steady() {
    const compiled = Math.max(0, ...report.compiles.map((frame) => frame.at + frame.seconds));
    const runs = report.runs.filter(([, at]) => at >= compiled);
    if (!runs.length || !compiled) return null;
    return padded(runs[0][1], Math.max(...runs.map(([, at, seconds]) => at + seconds)));
  }

  show() {
    this.resize();
  }

  listen() {
    new ResizeObserver(() => this.resize()).observe(this.box);
    document.addEventListener("theme", () => {
      this.colours = null;
      this.draw();
    });
    const { canvas } = this;
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    canvas.addEventListener("keydown", (event) => this.key(event));
    canvas.addEventListener("pointerdown", (event) => this.grab(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    canvas.addEventListener("pointerup", (event) => this.drop(event));
    canvas.addEventListener("pointercancel", () => (this.held = null));
    canvas.addEventListener("pointerleave", () => (this.tip.hidden = true));
    canvas.addEventListener("dblclick", (event) => this.zoom(0.25, this.time(event.offsetX)));
  }

  resize() {
    const width = this.box.clientWidth;
    if (!width) return;
    const scale = window.devicePixelRatio || 1;
    this.width = width;
    this.gutter = width < 600 ? 84 : GUTTER;
    this.height = AXIS + this.rows.length * ROW + 4;
    this.canvas.width = width * scale;
    this.canvas.height = this.height * scale;
    this.canvas.style.height = `${this.height}px`;
    this.scale = scale;
    this.draw();
  }

  x(time) {
    return this.gutter + ((time - this.view.from) / (this.view.to - this.view.from)) * (this.width - this.gutter);
  }

  time(x) {
    return this.view.from + ((x - this.gutter) / (this.width - this.gutter)) * (this.view.to - this.view.from);
  }

  go({ from, to }) {
    const span = Math.min(Math.max(to - from, CLOSEST * 100), this.all.to - this.all.from);
    const start = Math.min(Math.max(from, this.all.from), this.all.to - span);
    this.view = { from: start, to: start + span };
    this.later();
  }

  zoom(factor, around = (this.view.from + this.view.to) / 2) {
    this.go({ from: around - (around - this.view.from) * factor, to: around + (this.view.to - around) * factor });
  }

  pan(pixels) {
    const time = (pixels / (this.width - this.gutter)) * (this.view.to - this.view.from);
    this.go({ from: this.view.from + time, to: this.view.to + time });
  }

  wheel(event) {
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      this.zoom(Math.exp(Math.max(-60, Math.min(60, event.deltaY)) * 0.01), this.time(event.offsetX));
    } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      this.pan(event.deltaX || event.deltaY);
    }
  }

  key(event) {
    const step = (this.width - this.gutter) / 8;
    const actions = {
      ArrowLeft: () => this.pan(-step),
      ArrowRight: () => this.pan(step),
      "+": () => this.zoom(0.5),
      "=": () => this.zoom(0.5),
      "-": () => this.zoom(2),
      Home: () => this.go(this.all),
    };
    if (event.ctrlKey || event.metaKey || event.altKey || !actions[event.key]) return;
    event.preventDefault();
    actions[event.key]();
  }

  grab(event) {
    this.held = { x: event.offsetX, moved: 0 };
    this.canvas.setPointerCapture(event.pointerId);
  }

  move(event) {
    if (this.held) {
      const by = this.held.x - event.offsetX;
      this.held = { x: event.offsetX, moved: this.held.moved + Math.abs(by) };
      this.pan(by);
      return;
    }
    const item = this.at(event.offsetX, event.offsetY);
    this.canvas.style.cursor = item ? "pointer" : "grab";
    this.tip.hidden = !item;
    if (!item) return;
    replace(this.tip, item.words());
    this.tip.style.left = `${Math.min(event.offsetX + 12, this.width - this.tip.offsetWidth - 4)}px`;
    this.tip.style.top = `${event.offsetY + 14}px`;
  }

  drop(event) {
    const still = this.held && this.held.moved < 4;
    this.held = null;
    const item = still ? this.at(event.offsetX, event.offsetY) : null;
    if (item) replace(this.told, item.words(), " ", item.link ? item.link() : null);
  }

  /** The block at a point, or within two pixels of it. */
  at(x, y) {
    const row = this.rows[Math.floor((y - AXIS) / ROW)];
    if (!row || x < this.gutter || y < AXIS) return null;
    const near = row.items[firstBehind(row.items, this.time(x - 2))];
    return near && this.x(near.from) <= x + 2 ? near : null;
  }

  /** Draws once before the next frame, however often it is asked to. */
  later() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => this.draw());
  }

  draw() {
    this.waiting = false;
    if (!this.width) return;
    const pen = this.canvas.getContext("2d");
    const colours = (this.colours ??= paints());
    pen.setTransform(this.scale, 0, 0, this.scale, 0, 0);
    pen.clearRect(0, 0, this.width, this.height);
    pen.font = `11px ${colours.font}`;
    pen.textBaseline = "middle";
    this.axis(pen, colours);
    this.rows.forEach((row, index) => this.row(pen, colours, row, AXIS + index * ROW));
  }

  axis(pen, colours) {
    const span = this.view.to - this.view.from;
    const step = niceStep(span / Math.max((this.width - this.gutter) / 110, 1));
    const places = Math.max(0, -Math.floor(Math.log10(step)));
    pen.fillStyle = colours.muted;
    for (let tick = Math.ceil(this.view.from / step); tick * step <= this.view.to; tick += 1) {
      const x = Math.round(this.x(tick * step)) + 0.5;
      pen.strokeStyle = colours.line;
      pen.beginPath();
      pen.moveTo(x, AXIS - 6);
      pen.lineTo(x, this.height);
      pen.stroke();
      if (x + 50 < this.width) pen.fillText(`${(tick * step).toFixed(Math.min(places, 7))} s`, x + 4, AXIS / 2);
    }
  }

  row(pen, colours, row, top) {
    pen.fillStyle = row.strong ? colours.text : colours.muted;
    pen.fillText(fitted(pen, row.label, this.gutter - 12), 2, top + ROW / 2);
    pen.save();
    pen.beginPath();
    pen.rect(this.gutter, top, this.width - this.gutter, ROW);
    pen.clip();
    let drawn = -1;
    for (let index = firstBehind(row.items, this.view.from); index < row.items.length; index += 1) {
      const item = row.items[index];
      const left = this.x(item.from);
      if (left > this.width) break;
      const right = Math.max(this.x(item.to), left + 1);
      if (right - left < 1.5 && Math.floor(left) === drawn) continue;
      drawn = Math.floor(left);
      this.block(pen, colours, item, left, right - left, top);
    }
    pen.restore();
  }

  block(pen, colours, item, left, width, top) {
    const thin = item.kind === "gap";
    pen.fillStyle = colours[item.kind] ?? colours.graphs[item.hue % colours.graphs.length];
    pen.fillRect(left, thin ? top + ROW / 2 - 2 : top + 3, Math.max(width - (width > 3 ? 0.5 : 0), 1), thin ? 4 : ROW - 6);
    if (width < 34 || thin) return;
    pen.fillStyle = colours.on;
    const from = Math.max(left, this.gutter);
    pen.fillText(fitted(pen, item.label, left + width - from - 8), from + 4, top + ROW / 2 + 0.5);
  }
}

function padded(from, to) {
  const room = Math.max((to - from) * 0.02, 1e-6);
  return { from: from - room, to: to + room };
}

/** The index of the first item that ends after a time, of items in order that do not overlap. */
function firstBehind(items, time) {
  let low = 0;
  let high = items.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (items[middle].to < time) low = middle + 1;
    else high = middle;
  }
  return low;
}

function niceStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((times) => times * power).find((step) => step >= least);
}

function fitted(pen, text, width) {
  if (pen.measureText(text).width <= width) return text;
  let length = text.length;
  while (length > 1 && pen.measureText(`${text.slice(0, length)}\u2026`).width > width) length -= 1 + (length >> 4);
  return length > 1 ? `${text.slice(0, length)}\u2026` : "";
}

/** The colours of the theme that is shown, as a canvas takes them. */
function paints() {
  const probe = el("i", { hidden: true });
  document.body.append(probe);
  const colour = (name) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const found = {
    text: colour("text"),
    muted: colour("muted"),
    line: colour("line"),
    on: colour("on-block"),
    compile: colour("block-compile"),
    failed: colour("eager"),
    gap: colour("splits"),
    graphs: Array.from({ length: 6 }, (_, index) => colour(`block-${index}`)),
    font: getComputedStyle(document.body).fontFamily,
  };
  probe.remove();
  return found;
}
