"use strict";

// From here on the static tables give way to what the scripts build.
document.documentElement.classList.add("js");

// Control characters, what turns the direction of a line, and halves of surrogate pairs.
const UNSHOWABLE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]/gu;

function picture(character) {
  const code = character.codePointAt(0);
  return code < 0x20 ? String.fromCodePoint(0x2400 + code) : code === 0x7f ? "\u2421" : "\ufffd";
}

/** Any text of the program's, fit to be shown. */
function visible(text) {
  return String(text).replace(UNSHOWABLE, picture);
}

/**
 * An element.  Strings become text nodes, never markup; null and false are left out.  `on` holds listeners; an
 * attribute that is null or false is not set, and links lead to places of this page, to the pages of units below it or to
 * PyTorch's pages about breaks.
 */
function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) node.addEventListener(event, listener);
    } else if (value !== null && value !== undefined && value !== false) {
      if (name === "href" && !/^(#|units\/[\w.-]+\.html$|https:\/\/meta-pytorch\.github\.io\/compile-graph-break-site\/gb\/gb\d{4}\.html$)/.test(value)) throw new Error("a link out of the page");
      node.setAttribute(name, value === true ? "" : visible(value));
    }
  }
  add(node, children);
  return node;
}

function add(node, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false || child === "") continue;
    node.append(child instanceof Node ? child : document.createTextNode(visible(child)));
  }
  return node;
}

function replace(node, ...children) {
  node.replaceChildren();
  return add(node, children);
}

/** Draws a shape; SVG has its own namespace. */
function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

/** A path that may wrap after its slashes. */
function breakable(path) {
  return path.split(/(?<=\/)/).flatMap((part, index) => (index ? [el("wbr"), part] : [part]));
}

const PAGE = 200;
const unpaged = new Set();
window.addEventListener("beforeprint", () => unpaged.forEach((more) => more()));

/**
 * Appends items to a container, a page at a time: as the reader comes near the end where it `follows`, else all the
 * rest when asked to.  Printing shows all.
 */
function paged(container, items, render, wrap = (button) => button, page = PAGE, follows = true) {
  let shown = 0;
  let foot = null;
  const button = el("button", { class: "more", type: "button", on: { click: () => (follows ? more() : all()) } });
  const watch = new IntersectionObserver((seen) => seen.some((entry) => entry.isIntersecting) && more(), {
    rootMargin: "600px",
  });

  function more(count = page) {
    foot?.remove();
    const next = items.slice(shown, shown + count);
    container.append(...next.map((item, index) => render(item, shown + index)));
    shown += next.length;
    if (shown >= items.length) {
      watch.disconnect();
      unpaged.delete(all);
      return;
    }
    replace(button, `${number(items.length - shown)} more`);
    container.append((foot = wrap(button)));
    if (!follows) return;
    watch.unobserve(button);
    watch.observe(button);
  }

  function all() {
    more(items.length);
  }

  unpaged.add(all);
  more();
  return {
    /** Shows items up to one of them. */
    reach: (index) => index >= shown && more(index + 1 - shown),
    stop: () => {
      watch.disconnect();
      unpaged.delete(all);
    },
  };
}
