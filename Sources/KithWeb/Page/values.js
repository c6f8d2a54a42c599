// Values as elements: one line in a table, the rest unfolded on demand.

import { get } from "./api.js";
import { bytes, count, h, nameNode, plainName, setChildren, valueNode } from "./dom.js";
import { parse } from "./json.js";

const lineLimit = 160;
const pageOfItems = 200;

/** The value's node, or null if its JSON cannot be read (then its text is shown). */
export function nodeOf(json) {
  try { return parse(json); } catch { return null; }
}

/**
 * An element for an entry { key, type, bytes, json? }. Structured and long values unfold. A large
 * value has no JSON: `fetchJSON` returns it on demand.
 */
export function valueElement(entry, fetchJSON) {
  if (entry.missing || entry.removed) {
    return h("span", { class: "faint" }, entry.removed ? "removed" : "the key was missing");
  }
  if (entry.json === undefined) {
    return fetchJSON === undefined ? h("span", { class: "faint" }, `${bytes(entry.bytes)}, too large to show here`)
      : largeValue(entry, fetchJSON);
  }
  const node = nodeOf(entry.json);
  return node ? nodeElement(node, entry.key) : valueNode(entry.json);
}

/** Fetches the JSON of a key's shown value. */
export const shownJSON = (store, key) => async () => (await get("/api/value", { store, key })).json;

function largeValue(entry, fetchJSON) {
  const place = h("span", { class: "large" });
  const button = h("button", {
    type: "button", class: "quiet", tabindex: "-1", "aria-label": `Show ${plainName(entry.key)}`,
    async onclick() {
      button.disabled = true;
      try {
        const json = await fetchJSON();
        const node = nodeOf(json);
        const shown = node ? nodeElement(node, entry.key) : valueNode(json);
        if (shown instanceof HTMLDetailsElement) shown.open = true;
        setChildren(place, shown);
      } catch (error) {
        button.disabled = false;
        place.append(h("span", { class: "problem" }, ` ${error.message}`));
      }
    },
  }, "Show");
  place.append(`${bytes(entry.bytes)} `, button);
  return place;
}

function nodeElement(node, label) {
  if (node.type === "array" || node.type === "dictionary") {
    const size = (node.items ?? node.members).length;
    if (size === 0) return h("span", { class: "faint" }, `empty ${node.type}`);
    return unfolding(summary(node), label, () => tree(node));
  }
  if (node.type === "string" && (node.text.length > lineLimit || node.text.includes("\n"))) {
    return unfolding([valueNode(node.text.slice(0, lineLimit))], label,
      () => h("div", { class: "long" }, valueNode(node.text, true)));
  }
  if (node.type === "data" && node.text.length > 88) {
    return unfolding([scalar(node)], label, () => h("div", { class: "long code" }, node.text));
  }
  return scalar(node);
}

function unfolding(line, label, build) {
  const details = h("details", { class: "unfold" },
    h("summary", { tabindex: "-1", "aria-label": `Unfold ${plainName(label)}` }, ...line));
  details.firstElementChild.setAttribute("aria-description", details.textContent.slice(0, lineLimit));
  details.addEventListener("toggle", () => {
    if (details.open && details.childElementCount === 1) details.append(build());
  });
  return details;
}

function scalar(node) {
  switch (node.type) {
    case "string":
      return node.text === "" ? h("span", { class: "faint" }, "empty string")
        : valueNode(node.text);
    case "bool": return h("span", { class: `bool is-${node.text}` }, node.text);
    case "date": return dateElement(node);
    case "data": return h("span", { class: "code" }, dataText(node.text));
    default: return h("span", { class: "number" }, node.text);
  }
}

function dateElement(node) {
  const date = node.isSeconds ? null : new Date(node.text);
  if (!date || Number.isNaN(date.getTime())) {
    return h("span", { class: "number" }, node.isSeconds ? `${node.text} s since 2001` : node.text);
  }
  return h("time", { datetime: node.text, title: node.text }, localDate(date));
}

const dates = new Intl.DateTimeFormat("en-GB", {
  weekday: "short", day: "numeric", month: "short", year: "numeric", hour: "2-digit",
  minute: "2-digit", second: "2-digit", timeZoneName: "short",
});
export const localDate = (date) => dates.format(date);

/** Data is base64 everywhere, as in `kith get` and the editor. */
function dataText(base64) {
  const start = base64.length > 32 ? `${base64.slice(0, 24)} …` : base64;
  return `${start} (${count(dataSize(base64), "byte")})`.trim();
}

export const dataSize = (base64) => base64.length / 4 * 3 - (/=*$/.exec(base64)[0].length);

/** One line that says how much there is and how it begins. */
function summary(node) {
  const members = node.members ?? node.items.map((item) => [null, item]);
  const line = [h("span", { class: "size" }, node.members ? `{${members.length}}` : `[${members.length}]`)];
  let length = 0;
  for (const [index, [key, item]] of members.entries()) {
    if (index === 6 || length > lineLimit) { line.push(" …"); break; }
    line.push(index === 0 ? " " : ", ");
    if (key !== null) line.push(nameNode(key.slice(0, 40)), ": ");
    line.push(brief(item));
    length += (key?.length ?? 0) + (item.text?.length ?? 4) + 2;
  }
  return line;
}

function brief(node) {
  if (node.members) return `{${node.members.length}}`;
  if (node.items) return `[${node.items.length}]`;
  if (node.type === "string") return valueNode(node.text.slice(0, 60));
  return scalar(node);
}

function tree(node) {
  const members = node.members ?? node.items.map((item, index) => [index, item]);
  const list = h("ul", { class: "tree" });
  let shown = 0;
  function more() {
    const end = Math.min(shown + pageOfItems, members.length);
    for (; shown < end; shown += 1) {
      const [key, item] = members[shown];
      const name = typeof key === "number" ? h("span", { class: "index" }, String(key)) : nameNode(key);
      list.append(h("li", {}, h("span", { class: "member" }, name, " "),
        h("span", { class: "type" }, item.type), " ", nodeElement(item, String(key))));
    }
    if (shown < members.length) {
      const item = h("li", {}, h("button", {
        type: "button", class: "quiet", onclick() { item.remove(); more(); },
      }, `Show ${Math.min(pageOfItems, members.length - shown)} more of ${members.length}`));
      list.append(item);
    }
  }
  more();
  return list;
}
