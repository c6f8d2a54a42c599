// Elements, and text that is safe to look at. Text becomes text nodes only, never HTML.

export const byId = (id) => document.getElementById(id);

/** Creates an element. `on…` members are listeners, `class` and others are attributes. */
export function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...shownOf(children));
  return element;
}

/** Without the results of `condition && child` whose condition is false. */
const shownOf = (children) => children.flat()
  .filter((child) => child !== null && child !== undefined && child !== false);

/** Replaces an element's children by those that `h` would take. */
export function setChildren(element, ...children) {
  element.replaceChildren(...shownOf(children));
}

/**
 * Draws an element's children only if what they show has changed, so that the focus stays. Returns
 * whether it has.
 */
export function redraw(element, shown, children) {
  const text = JSON.stringify(shown);
  if (element.dataset.drawn === text) return false;
  element.dataset.drawn = text;
  setChildren(element, ...children());
  return true;
}

/** Sets the text only if it differs, so that screen readers do not repeat a live region. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function show(element, isShown) {
  element.hidden = !isShown;
}

// Control, bidi and invisible characters. Values may hold joiners and emoji selectors; in keys and
// names these too are shown, so that different names look different.
const inValues =
  /[\p{Cc}\p{Bidi_C}\p{Zl}\p{Zp}\p{Cs}\ufff9-\ufffb]|(?![\u200c\u200d\ufe0e\ufe0f])\p{DI}/gu;
const inNames = /[\p{Cc}\p{Bidi_C}\p{Zl}\p{Zp}\p{Cs}\p{DI}\ufff9-\ufffb]|(?! )\p{Zs}/gu;

const number = (character) => `\\u{${character.codePointAt(0).toString(16)}}`;

/**
 * Of texts that Unicode calls equivalent, only the composed one (NFC) is shown as it is; the others
 * have by number what distinguishes them.
 */
function distinct(text) {
  if (text.normalize("NFC") === text) return text;
  return text.replace(/./gsu, (character) =>
    (/[\p{M}\u1160-\u11ff]/u.test(character) || character.normalize("NFC") !== character
      ? number(character) : character));
}

/** Whether a plain text field would hide or change part of the text. */
export function hasInvisible(text) {
  return text.replace(/[\n\t]/g, "").search(inValues) >= 0;
}

/** A key or name for attributes: invisible characters by number. */
export function plainName(text) {
  return distinct(text).replace(inNames, number);
}

/** A key or name, isolated from the text around it. */
export function nameNode(text) {
  return h("bdi", { class: "name" }, ...marked(distinct(text), inNames, false));
}

/** A value's text: invisible characters by number; with `hasLines`, line ends stay. */
export function valueNode(text, hasLines = false) {
  return h("bdi", { dir: "auto", class: "text" }, ...marked(text, inValues, hasLines));
}

function marked(text, pattern, hasLines) {
  if (text.search(pattern) < 0) return [text];
  const parts = [];
  let start = 0;
  for (const match of text.matchAll(pattern)) {
    const character = match[0];
    if (hasLines && (character === "\n" || character === "\t")) continue;
    if (match.index > start) parts.push(text.slice(start, match.index));
    const shown = character === "\n" ? "↵" : character === "\t" ? "⇥" : number(character);
    parts.push(h("span", { class: "mark", dir: "ltr" }, shown));
    start = match.index + character.length;
  }
  if (start < text.length) parts.push(text.slice(start));
  return parts;
}

// Numbers and times for people.

const integers = new Intl.NumberFormat("en");
export const count = (value, noun) =>
  `${integers.format(value)}${noun ? ` ${noun}${value === 1 ? "" : "s"}` : ""}`;

export function bytes(value) {
  if (value < 1024) return count(value, "byte");
  const [amount, unit] = value < 1048576 ? [value / 1024, "KiB"] : [value / 1048576, "MiB"];
  return `${amount.toFixed(amount < 10 && !Number.isInteger(amount) ? 1 : 0)} ${unit}`;
}

export function duration(milliseconds) {
  const seconds = Math.abs(milliseconds) / 1000;
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  for (const [size, unit] of [[86400, "d"], [3600, "h"], [60, "min"]]) {
    if (seconds >= 2 * size || (size > 60 && seconds >= size)) {
      return `${Math.floor(seconds / size)} ${unit}`;
    }
  }
  return `${Math.floor(seconds)} s`;
}

export function ago(milliseconds, now) {
  const past = now - milliseconds;
  return past < 5000 ? "now" : `${duration(past)} ago`;
}

const moments = new Intl.DateTimeFormat("en-GB", {
  day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit",
  second: "2-digit",
});
/** Times come from other devices, and may be beyond what a Date holds. */
export function moment(milliseconds) {
  const date = new Date(milliseconds);
  return Number.isNaN(date.getTime()) ? "an impossible time" : moments.format(date);
}

/** Joins names: "a", "a and b", "a, b and 2 more". The parts are text and elements. */
export function nameList(names, limit = 3) {
  const shown = names.length > limit ? names.slice(0, limit - 1) : names;
  const parts = shown.map((name) => ({ name }));
  if (names.length > shown.length) parts.push(`${names.length - shown.length} more`);
  return parts.flatMap((part, index) => {
    const separator = index === 0 ? "" : index === parts.length - 1 ? " and " : ", ";
    return separator ? [separator, part] : [part];
  });
}

/** Elements of text parts, in which `{ name }` is a name. */
export const nodes = (parts) =>
  parts.map((part) => (typeof part === "string" ? part : nameNode(part.name)));

// Short messages at the lower edge, and dialogs.

export function toast(parts, { isError = false, action } = {}) {
  const close = () => element.remove();
  const element = h("div", { class: `toast${isError ? " is-error" : ""}` },
    h("span", {}, ...nodes([parts].flat())),
    action && h("button", { type: "button", onclick: () => { close(); action.run(); } },
      action.label),
    h("button", { type: "button", class: "close", "aria-label": "Close message", onclick: close }));
  const place = byId(isError ? "alerts" : "toasts");
  place.append(element);
  while (place.childElementCount > 3) place.firstElementChild.remove();
  setTimeout(close, isError ? 20000 : action ? 10000 : 5000);
}

export function openDialog(dialog) {
  clearProblem(dialog);
  if (!dialog.open) dialog.showModal();
}

/**
 * Lets `run` answer Escape, as the event `cancel`: Chromium closes a dialog on a second Escape,
 * whatever was answered to the first.
 */
export function onEscape(dialog, run) {
  dialog.addEventListener("cancel", run);
  dialog.addEventListener("keydown", (event) => { if (event.key === "Escape") run(event); });
}

/** Shows an error in the dialog or form that caused it. */
export function showProblem(container, error) {
  const place = container.querySelector(".problem");
  setChildren(place, error.message ?? String(error));
  place.hidden = false;
}

export function clearProblem(container) {
  const place = container.querySelector(".problem");
  if (place) { place.hidden = true; setChildren(place); }
}

/** Runs a form's action: its buttons wait, an error shows in it. Returns whether it succeeded. */
export async function perform(container, action) {
  const buttons = [...container.querySelectorAll("button")].filter((button) => !button.disabled);
  clearProblem(container);
  for (const button of buttons) button.disabled = true;
  container.setAttribute("aria-busy", "true");
  try {
    await action();
    return true;
  } catch (error) {
    showProblem(container, error);
    return false;
  } finally {
    for (const button of buttons) button.disabled = false;
    container.removeAttribute("aria-busy");
  }
}

/** Performs the action when a dialog or form is submitted; a dialog then closes. */
export function onSubmit(container, action) {
  container.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (await perform(container, () => action(event))) container.close?.();
  });
}
