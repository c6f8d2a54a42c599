// The table of keys. Rows are kept by key and changed in place; only new and changed ones are built.

import { app, emit, on } from "./app.js";
import { byId, bytes, count, nameNode, plainName, setChildren, setText, show } from "./dom.js";
import { shownJSON, valueElement } from "./values.js";

/** By key: { row, entry, haystack }. */
const rows = new Map();
let current = null;
let order = "key";

// The order of UTF-8 bytes is the order of code points.
function compareKeys(left, right) {
  const length = Math.min(left.length, right.length);
  for (let index = 0; index < length; index += 1) {
    const [a, b] = [left.charCodeAt(index), right.charCodeAt(index)];
    if (a === b) continue;
    const isSurrogate = [a, b].map((unit) => unit >= 0xd800 && unit < 0xe000);
    return isSurrogate[0] === isSurrogate[1] ? a - b : isSurrogate[0] ? 1 : -1;
  }
  return left.length - right.length;
}

const orders = {
  key: (left, right) => compareKeys(left.key, right.key),
  size: (left, right) => right.bytes - left.bytes || compareKeys(left.key, right.key),
  type: (left, right) => left.type.localeCompare(right.type) || compareKeys(left.key, right.key),
};

/** Shows exactly these entries. `isNew`: of another store, so nothing lights up. */
export function showEntries(entries, isNew) {
  const start = performance.now();
  const seen = new Set(entries.map((entry) => entry.key));
  for (const key of [...rows.keys()]) if (!seen.has(key)) removeRow(key);
  let isChanged = false;
  for (const entry of entries) {
    const old = rows.get(entry.key) && { entry: rows.get(entry.key).entry };
    if (old && isSame(old.entry, entry)) continue;
    isChanged = true;
    setRow(entry);
    // A large value without its JSON may be the same: it is read again, but does not light up.
    const isLargeAlike = old && entry.json === undefined && old.entry.bytes === entry.bytes;
    if (!isNew && !isLargeAlike) flash(entry.key);
  }
  app.entries = new Map(entries.map((entry) => [entry.key, entry]));
  if (isChanged) placeRows();
  search();
  performance.measure("kith-show", { start });
}

/** Applies a change: items as in the event `change`. */
export function changeEntries(items) {
  for (const item of items) {
    if (item.removed) {
      app.entries.delete(item.key);
      removeRow(item.key);
      continue;
    }
    const old = rows.get(item.key);
    app.entries.set(item.key, item);
    if (old && isSame(old.entry, item)) continue;
    setRow(item);
    flash(item.key);
  }
  placeRows();
  search();
}

const isSame = (left, right) => left.json !== undefined && left.json === right.json
  && left.type === right.type && left.bytes === right.bytes;

function setRow(entry) {
  let item = rows.get(entry.key);
  if (!item) {
    const row = byId("key-row").content.firstElementChild.cloneNode(true);
    row.dataset.key = entry.key;
    const [key, , , , actions] = row.cells;
    key.append(nameNode(entry.key));
    const name = plainName(entry.key);
    const labels = ["Edit", "History of", "Remove"];
    for (const [index, button] of [...actions.children].entries()) {
      button.setAttribute("aria-label", `${labels[index]} ${name}`);
    }
    item = { row, isPlaced: false };
    rows.set(entry.key, item);
  }
  item.entry = entry;
  item.haystack = null;
  const [, type, size, value] = item.row.cells;
  setText(type.firstElementChild, entry.type);
  setText(size, bytes(entry.bytes));
  const isOpen = value.firstElementChild?.open === true;
  setChildren(value, valueElement(entry, shownJSON(app.store, entry.key)));
  if (isOpen && "open" in value.firstElementChild) value.firstElementChild.open = true;
  if (item.row === current) value.querySelector("summary, button")?.setAttribute("tabindex", "0");
}

function removeRow(key) {
  const item = rows.get(key);
  if (!item) return;
  if (item.row === current) {
    const next = neighbour(1) ?? neighbour(-1);
    const hadFocus = item.row.contains(document.activeElement);
    makeCurrent(next);
    if (hadFocus) (next ?? byId("search")).focus();
  }
  item.row.remove();
  rows.delete(key);
}

/** Puts rows where they belong. Rows that are in order already are not touched. */
function placeRows() {
  const body = byId("key-rows");
  const sorted = [...rows.values()].sort((left, right) => orders[order](left.entry, right.entry));
  if (body.childElementCount === 0) {
    body.append(...sorted.map((item) => item.row));
  } else {
    let place = body.firstElementChild;
    for (const { row } of sorted) {
      if (row === place) place = place.nextElementSibling;
      else body.insertBefore(row, place);
    }
  }
  if (!current && sorted.length > 0) makeCurrent(sorted[0].row);
}

function flash(key) {
  const row = rows.get(key)?.row;
  row?.classList.remove("is-changed");
  requestAnimationFrame(() => requestAnimationFrame(() => row?.classList.add("is-changed")));
}

// Search

function search() {
  const words = byId("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const item of rows.values()) {
    if (words.length > 0) {
      item.haystack ??= `${item.entry.key} ${item.entry.type} ${item.entry.json ?? ""}`.toLowerCase();
    }
    const isMatch = words.every((word) => item.haystack.includes(word));
    if (item.row.hidden === isMatch) item.row.hidden = !isMatch;
    if (isMatch) shown += 1;
  }
  setText(byId("search-count"), words.length > 0 ? `${count(shown)} of ${count(rows.size, "key")}`
    : count(rows.size, "key"));
  show(byId("keys"), rows.size > 0);
  show(byId("keys-empty"), rows.size === 0);
  show(byId("search-empty"), rows.size > 0 && shown === 0);
  if (current?.hidden) makeCurrent([...byId("key-rows").rows].find((row) => !row.hidden));
}

// Keyboard: one row is in the tab order; arrow keys move it.

function makeCurrent(row) {
  const set = (one, value) => {
    one.tabIndex = value;
    for (const inner of one.querySelectorAll("button, summary")) inner.tabIndex = value;
  };
  if (current) set(current, -1);
  current = row ?? null;
  if (current) set(current, 0);
}

function neighbour(step) {
  let row = current;
  do row = step > 0 ? row?.nextElementSibling : row?.previousElementSibling; while (row?.hidden);
  return row;
}

function onKey(event) {
  const row = event.target.closest("tr");
  if (!row || event.ctrlKey || event.metaKey || event.altKey) return;
  makeCurrentIfNew(row);
  const visible = () => [...byId("key-rows").rows].filter((one) => !one.hidden);
  const goals = {
    ArrowDown: () => neighbour(1), ArrowUp: () => neighbour(-1),
    Home: () => visible().at(0), End: () => visible().at(-1),
    PageDown: () => visible()[Math.min(visible().indexOf(row) + 10, visible().length - 1)],
    PageUp: () => visible()[Math.max(visible().indexOf(row) - 10, 0)],
  };
  if (goals[event.key]) {
    event.preventDefault();
    const goal = goals[event.key]();
    if (goal) { makeCurrent(goal); goal.focus(); }
  } else if (event.target === row && (event.key === "Enter" || event.key === "Delete")) {
    event.preventDefault();
    act(event.key === "Enter" ? "edit" : "remove", row.dataset.key);
  }
}

const makeCurrentIfNew = (row) => { if (row !== current) makeCurrent(row); };

function act(action, key) {
  const entry = app.entries.get(key);
  if (entry) emit(action, entry);
}

function sortBy(name) {
  order = name;
  for (const button of document.querySelectorAll("#keys [data-order]")) {
    const isChosen = button.dataset.order === name;
    button.closest("th").setAttribute("aria-sort",
      isChosen ? (name === "size" ? "descending" : "ascending") : "none");
  }
  placeRows();
}

/** Marks rows whose edits wait in the transaction. */
function markPending() {
  for (const [key, { row }] of rows) row.classList.toggle("is-pending", app.pending.has(key));
}

export function startKeys() {
  const body = byId("key-rows");
  body.addEventListener("keydown", onKey);
  body.addEventListener("focusin", (event) => makeCurrentIfNew(event.target.closest("tr")));
  body.addEventListener("animationend", (event) => {
    if (event.target.tagName === "TR") event.target.classList.remove("is-changed");
  });
  body.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-action]");
    if (button) act(button.dataset.action, button.closest("tr").dataset.key);
  });
  for (const button of document.querySelectorAll("#keys [data-order]")) {
    button.addEventListener("click", () => sortBy(button.dataset.order));
  }
  byId("search").addEventListener("input", search);
  byId("search").addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" && current) {
      event.preventDefault();
      current.focus();
    }
  });
  on("pending", markPending);
}
