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
