const VERDICTS = {
  raises: { word: "raises", rank: 3 },
  eager: { word: "runs eager", rank: 2 },
  splits: { word: "splits the graph", rank: 1 },
};
const ORIGINS = { user: "your code", library: "libraries", framework: "torch" };

const grouping = new Intl.NumberFormat("en-US");

function number(value) {
  return grouping.format(value);
}

function counted(value, one, many = `${one}s`) {
  return `${number(value)} ${value === 1 ? one : many}`;
}

/** Three digits and a unit: `1.20 ms`. */
function duration(seconds) {
  if (seconds === null || seconds === undefined) return "";
  if (seconds === 0) return "0 s";
  const [unit, size] = seconds >= 1 ? ["s", 1] : seconds >= 1e-3 ? ["ms", 1e-3] : ["\u00b5s", 1e-6];
  const value = seconds / size;
  return `${value >= 1000 ? number(Math.round(value)) : digits(value)} ${unit}`;
}

function digits(value) {
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
}

function bytes(count) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  const power = count ? Math.min(Math.floor(Math.log10(count) / 3), units.length - 1) : 0;
  return power ? `${digits(count / 1000 ** power)} ${units[power]}` : `${count} B`;
}

function sentence(text) {
  return text ? `${text.trim().replace(/[. ]+$/, "")}.` : null;
}

/** A sentence that starts with a word of prose, not of code, with a capital. */
function told(text) {
  const said = sentence(text);
  return said && /^[a-z]{2,},? [a-z(]/.test(said) ? said[0].toUpperCase() + said.slice(1) : said;
}

/** As text sorts for people: `b9` before `b10`. */
const collator = new Intl.Collator("en", { numeric: true });
