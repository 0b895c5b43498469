const FLAME_ROW = 20;
const FLAME_LEAST = 0.6;
const FLAME_MANY = 40;
const PARTS = {
  tracing: "tracing",
  guards: "guards",
  "aot-autograd": "AOTAutograd",
  inductor: "Inductor",
  kernels: "compiling kernels",
  autotuning: "autotuning",
  caches: "loading from caches",
  "cuda-graphs": "recording CUDA graphs",
  other: "the rest of Dynamo",
};

/**
 * What compiling spent its time on, as a flame graph that hangs from its root: the functions, their compilations, what
 * the compiler did.  A block is as wide as its time; a click makes it as wide as the page.
 */
class FlameGraph {
  constructor(compiles) {
    this.root = flameRoot(compiles);
    this.top = this.root;
    this.box = el("div", { class: "flame", role: "group", "aria-label": "Flame graph of compile time. Arrow keys move, Enter zooms, Escape shows all." });
    this.told = el("div", { class: "told", role: "status" });
    this.all = el("button", { class: "tool", type: "button", on: { click: () => this.zoom(this.root) } }, "All");
    this.node = el("div", {}, el("div", { class: "filter" }, this.all, partLegend(this.root), el("span", { class: "count" }, "Click a block to zoom, the row above it to go back")), this.box, this.told);
    new ResizeObserver(() => this.draw()).observe(this.box);
    this.box.addEventListener("keydown", (event) => this.key(event));
  }

  zoom(block) {
    this.top = block;
    this.draw();
    this.tell(block);
    this.buttons.get(block)?.focus({ preventScroll: true });
  }

  draw() {
    const width = this.box.clientWidth;
    if (!width) return;
    this.buttons = new Map();
    const above = [];
    for (let block = this.top.above; block; block = block.above) above.unshift(block);
    above.forEach((block, row) => this.place(block, 0, width, row));
    const rows = this.below(this.top, 0, width, above.length);
    this.box.style.height = `${rows * FLAME_ROW}px`;
    this.box.replaceChildren(...this.buttons.values());
    this.all.disabled = this.top === this.root;
    this.buttons.get(this.top).tabIndex = 0;
  }

  /** Draws a block with what is in it; the number of rows that are taken. */
  below(block, left, width, row) {
    this.place(block, left, width, row);
    let rows = row + 1;
    let at = left;
    for (const inner of block.inner) {
      const wide = (inner.seconds / block.seconds) * width;
      if (wide >= FLAME_LEAST) rows = Math.max(rows, this.below(inner, at, wide, row + 1));
      at += wide;
    }
    return rows;
  }

  place(block, left, width, row) {
    const words = flameWords(block, this.root);
    const button = el("button", { class: `block ${block.part ? `part-${block.part}` : ""} ${block.own ? "" : "theirs"}`, type: "button", tabindex: "-1", title: words, "aria-label": words, on: { click: () => this.zoom(block), focus: () => this.tell(block) } }, width > 24 ? block.label : null);
    button.style.left = `${left}px`;
    button.style.top = `${row * FLAME_ROW}px`;
    button.style.width = `${Math.max(width - 1, FLAME_LEAST)}px`;
    this.buttons.set(block, button);
  }

  tell(block) {
    replace(this.told, flameWords(block, this.root), " ", block.place ? placeLink(block.place) : null);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const now = [...this.buttons].find(([, button]) => button === document.activeElement)?.[0];
    if (!now) return;
    const beside = now.above?.inner.filter((block) => this.buttons.has(block)) ?? [now];
    const next = {
      ArrowDown: now.inner.find((block) => this.buttons.has(block)),
      ArrowUp: now.above,
      ArrowRight: beside[beside.indexOf(now) + 1],
      ArrowLeft: beside[beside.indexOf(now) - 1],
    }[event.key];
    if (event.key === "Escape") this.zoom(this.root);
    else if (next) this.buttons.get(next).focus({ preventScroll: true });
    else if (!event.key.startsWith("Arrow")) return;
    event.preventDefault();
  }
}

function flameWords(block, root) {
  const share = root.seconds ? ` (${digits((100 * block.seconds) / root.seconds)} %)` : "";
  const times = block.count > 1 ? `, ${number(block.count)}\u00d7` : "";
  const part = block.part ? `, ${PARTS[block.part]}` : "";
  return `${block.label}: ${duration(block.seconds)}${share}${times}${part}`;
}

/** The tree of all compilations: those of one function together, and of many functions, those of one file. */
function flameRoot(compiles) {
  const functions = new Map();
  for (const frame of compiles) {
    const key = `${frame.site[0]} ${frame.function}`;
    functions.set(key, [...(functions.get(key) ?? []), frame]);
  }
  const blocks = [...functions.values()].map(flameFunction);
  const files = new Set(blocks.map((block) => block.place.path));
  const inner = blocks.length > FLAME_MANY && files.size > 1 ? [...files].map((path) => flameFile(path, blocks)) : blocks;
  return hung({ label: "all compilations", own: true, inner });
}

function flameFile(path, blocks) {
  const inner = blocks.filter((block) => block.place.path === path);
  return { label: fileName(path), own: inner.some((block) => block.own), count: inner.reduce((sum, block) => sum + block.count, 0), inner };
}

function flameFunction(frames) {
  const inner = frames.length > 1 ? frames.map(flameCompile) : frames[0].time.map(flameNode);
  const first = frames.find((frame) => !frame.rest_only) ?? frames[0];
  return { label: first.function, place: site(first.site), own: first.origin === "user", seconds: frames.reduce((sum, frame) => sum + whole(frame), 0), count: frames.length, inner };
}

function flameCompile(frame) {
  const rest = frame.rest_only ? `the rest from line ${frame.site[1]}` : frame.function;
  return { label: `${rest} (${frame.compile_id})`, place: site(frame.site), own: true, seconds: whole(frame), inner: frame.time.map(flameNode) };
}

function whole(frame) {
  return frame.seconds + frame.backward_seconds;
}

/** A node of the data: `[name, part, seconds, times, what is in it]`. */
function flameNode([name, part, seconds, count, inner]) {
  return { label: name, part, seconds, count, place: null, own: true, inner: inner.map(flameNode) };
}

/** The block, with what is around each, what takes longest first, and none shorter than what is in it. */
function hung(block) {
  for (const inner of block.inner) {
    inner.above = block;
    hung(inner);
  }
  block.inner.sort((a, b) => b.seconds - a.seconds);
  block.seconds = Math.max(block.seconds ?? 0, block.inner.reduce((sum, inner) => sum + inner.seconds, 0));
  return block;
}

/** What each part took by itself. */
function partLegend(root) {
  const spent = new Map();
  const add_ = (block) => {
    const own = block.seconds - block.inner.reduce((sum, inner) => sum + inner.seconds, 0);
    if (block.part) spent.set(block.part, (spent.get(block.part) ?? 0) + own);
    block.inner.forEach(add_);
  };
  add_(root);
  const most = [...spent].filter(([, seconds]) => seconds > 0).sort((a, b) => b[1] - a[1]);
  return el("span", { class: "time-parts" }, most.map(([part, seconds]) => el("span", { class: `part-${part}` }, el("i", { class: "dot" }), PARTS[part], " ", el("b", {}, duration(seconds)))));
}
