/** Shows a tab at a time; `#tab/argument/...` in the address says which, so that every place has a link. */
class App {
  constructor(tabs) {
    this.tabs = tabs;
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
