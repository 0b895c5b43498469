/** A place as people write it, which leads to its line on the Source tab where the page has it. */
function placeLink(place) {
  if (!place) return null;
  const label = `${shortPath(place.path)}:${place.line}`;
  const title = page.paths[place.path];
  if (lineText(place.path, place.line) === null) return el("span", { class: "place", title }, breakable(label));
  return el("a", { class: "place", href: `#source/${place.path}/${place.line}`, title }, breakable(label));
}

function callerLink([path, line, name]) {
  return [placeLink({ path, line }), name ? el("span", { class: "in" }, `in ${name}`) : null];
}

/** Labels and what they stand for, one below the other; those of nothing are left out. */
function facts(pairs) {
  const kept = pairs.filter(([, value]) => value !== null && value !== undefined && value !== "" && value !== false);
  return el("dl", { class: "facts" }, kept.map(([label, ...value]) => [el("dt", {}, label), el("dd", {}, value)]));
}

function section(heading, ...content) {
  return el("section", {}, el("h2", {}, heading), content);
}

/** The place of a function, after its name. */
function besideName([path, line]) {
  return el("span", { class: "in", title: page.paths[path] }, breakable(`${shortPath(path)}:${line}`));
}

/** A long list, folded. */
function folded(words, items) {
  const list = el("span", { class: "mono" }, items.map((item) => el("span", { class: "item" }, item)));
  return items.length > 6 ? el("details", {}, el("summary", {}, words), list) : [`${words}: `, list];
}

/** What is shown where a search finds nothing. */
function nothing(text) {
  return el("p", { class: "nothing" }, text);
}

/** Whose code it is, where it is not the user's. */
function ownerTag(origin) {
  return origin === "user" ? null : tag(origin === "library" ? "library" : "torch");
}

function tag(text, kind = "", title = null) {
  return el("span", { class: `tag ${kind}`, title }, text);
}

function verdictMark(verdict) {
  return el("span", { class: `verdict ${verdict}` }, el("i", { class: "dot" }), VERDICTS[verdict].word);
}

/** A bar of which `part` is filled; decoration of the number beside it. */
function bar(part, kind = "") {
  const fill = el("i", { class: kind });
  fill.style.width = `${Math.min(Math.max(part, 0), 1) * 100}%`;
  return el("span", { class: "bar", "aria-hidden": "true" }, fill);
}

function why(found) {
  return found.rule && page.rules[found.rule] ? page.rules[found.rule].why : found.reason;
}

function advice(found) {
  if (found.advice) return told(found.advice);
  return found.hints?.length ? el("ul", {}, found.hints.map((hint) => el("li", {}, hint))) : null;
}

/** What torch calls it, and says of it. */
function torchsWords(found) {
  if (!found.gb_type) return null;
  const page = found.page ? el("a", { href: found.page, target: "_blank", rel: "noreferrer" }, found.gb_id) : found.gb_id;
  return [page, page ? " " : "", sentence(found.gb_type), " ", sentence(found.reason)];
}

function stackList(stack) {
  if (stack.length < 2) return null;
  return el("ol", { class: "stack" }, stack.map((caller) => el("li", { class: caller[3] }, callerLink(caller))));
}

function idList(ids, most = 12) {
  const rest = ids.length > most ? ` and ${number(ids.length - most)} more` : "";
  return ids.length ? el("span", { class: "ids" }, ids.slice(0, most).join("  ") + rest) : null;
}

function breakFacts(found) {
  return facts([
    ["Why", told(why(found))],
    ["So", found.so],
    [found.advice ? "Instead" : "Hints", advice(found)],
    ["Takes", sentence(found.price?.words)],
    ["Reached", stackList(found.stack)],
    ["torch says", torchsWords(found)],
    ["Compiled as", idList(found.compile_ids)],
  ]);
}

function frameFacts(frame) {
  return facts([
    ["Why", told(frame.reason)],
    ["Instead", told(frame.advice)],
    ["Reached", stackList(frame.stack)],
    ["Takes", sentence(frame.price?.words)],
    ["torch says", frame.gb_type ? [frame.gb_id ? `${frame.gb_id} ` : "", frame.gb_type] : null],
  ]);
}

function recompileFacts({ words, advice, recompiles }) {
  const [first] = recompiles;
  return facts([
    ["Why", sentence(words)],
    ["Instead", told(advice)],
    ["Called from", first.trigger ? callerLink(first.trigger) : null],
    ["Your line", first.users_line ? callerLink(first.users_line) : null],
    ["Compiled as", idList(recompiles.map((recompile) => recompile.compile_id))],
  ]);
}
