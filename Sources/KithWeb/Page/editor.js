// The editor: a key, a type, and a field for a value of that type.

import { app, on } from "./app.js";
import {
  byId, clearProblem, count, hasInvisible, nameNode, onSubmit, openDialog, perform, setText, show,
} from "./dom.js";
import { isInteger64, JsonError, parse, print, quote } from "./json.js";
import { dataSize, localDate, nodeOf } from "./values.js";
import { addToTransaction, save, shownJson, takeOut } from "./writes.js";

/** { key, was } of the edited entry; `key` is null for a new one. */
let edited = { key: null, was: null };

const value = () => byId("editor-value");
const type = () => byId("editor-type").value;

const hints = {
  string: "Any text.",
  integer: "A whole number of 64 bits, such as -12.",
  double: "A number such as 0.5 or 1e16; also inf, -inf and nan.",
  bool: "",
  date: "Such as 2026-12-01, or 2026-12-01T10:00:00+01:00. Without an offset it is UTC.",
  data: "Bytes as base64, as hexadecimal digits after 0x, or of a file.",
  array: "JSON in brackets, such as [1, 2.0, \"three\"].",
  dictionary: "JSON in braces, such as {\"width\": 1280}.",
};

/** Opens the editor for an entry, or for a new key. */
async function edit(entry) {
  const dialog = byId("editor");
  const pending = entry && app.pending.get(entry.key);
  const mine = { key: entry?.key ?? null, was: null, bytes: entry?.bytes };
  edited = mine;
  setText(byId("editor-title"), entry ? "Edit " : "Add a key");
  if (entry) byId("editor-title").append(nameNode(entry.key));
  show(byId("editor-key-field"), !entry);
  byId("editor-key").required = !entry;
  byId("editor-key").value = "";
  byId("editor-escapes").checked = false;
  show(byId("editor-changed"), false);
  setText(byId("editor-limits"), limits());
  byId("editor-type").value = pending?.type ?? entry?.type ?? "string";
  value().value = "";
  showFields();
  openDialog(dialog);
  if (!entry) return byId("editor-key").focus();
  await perform(dialog, async () => {
    mine.was = await shownJson(entry);
    if (edited !== mine) return;
    if (mine.was === null) throw new Error("The key was removed meanwhile. Saving writes it again.");
    fillIn(nodeOf(pending?.json ?? mine.was), pending?.json ?? mine.was);
  });
  if (edited !== mine) return;
  value().setSelectionRange(0, 0);
  value().scrollTop = 0;
  (type() === "bool" ? dialog.querySelector("[name=editor-bool]:checked") : value())?.focus();
}

function limits() {
  const policy = app.status?.stores.find((store) => store.identifier === app.store)?.usage.policy;
  return policy ? `At most ${policy.keyBytes} bytes of UTF-8.` : "";
}

function fillIn(node, json) {
  if (!node) { value().value = json; return; }
  byId("editor-type").value = node.type;
  switch (node.type) {
    case "string": {
      // A plain field would hide or change such characters.
      const needsEscapes = hasInvisible(node.text);
      byId("editor-escapes").checked = needsEscapes;
      value().value = needsEscapes ? escape(node.text) : node.text;
      break;
    }
    case "bool":
      document.querySelector(`[name=editor-bool][value=${node.text}]`).checked = true;
      break;
    case "array": case "dictionary": value().value = print(node, "  "); break;
    case "date": value().value = node.isSeconds ? json : node.text; break;
    default: value().value = node.text;
  }
  showFields();
}

function showFields() {
  const name = type();
  show(byId("editor-bool"), name === "bool");
  show(byId("editor-value-field"), name !== "bool");
  show(byId("editor-escapes-field"), name === "string");
  show(byId("editor-now"), name === "date");
  show(byId("editor-file-field"), name === "data");
  const field = value();
  field.rows = { string: 4, array: 10, dictionary: 10, data: 5 }[name] ?? 1;
  field.dir = name === "string" && !byId("editor-escapes").checked ? "auto" : "ltr";
  field.classList.toggle("code", name !== "string" || byId("editor-escapes").checked);
  field.spellcheck = name === "string";
  setText(byId("editor-hint"), name === "string" && byId("editor-escapes").checked
    ? "Invisible characters are written as \\n, \\t or \\u202e; \\\\ is one backslash." : hints[name]);
  understand();
}

/** Says how the typed text is understood, if it is not plain. */
function understand() {
  const text = value().value.trim();
  let understood = "";
  try {
    if (type() === "date" && text) understood = localDate(readDate(text));
    if (type() === "data" && text) understood = count(dataSize(base64Text(text)), "byte");
    if (["double", "array", "dictionary"].includes(type()) && text) understood = roundedText(text);
    if (type() === "string" && !byId("editor-escapes").checked && hasInvisible(value().value)) {
      understood = "It has invisible characters. Tick the box below to see them.";
    }
  } catch { /* The error shows on saving. */ }
  setText(byId("editor-understood"), understood);
}

// Text with escapes

const escape = (text) => quote(text).slice(1, -1).replaceAll('\\"', '"');

function unescape(text) {
  return text.replace(/\\(u[0-9a-fA-F]{4}|["\\/bfnrt]|.?)/gs, (all, code) => {
    if (code.length < 1 || !/^(u....|["\\/bfnrt])$/s.test(code)) {
      throw new Error(`${all} is no escape. Write \\\\ for a backslash.`);
    }
    return JSON.parse(`"${all}"`);
  });
}

// As `kith set --type date` reads it; the server reads the text itself.
const datePattern =
  /^(\d{4}-\d{2}-\d{2})(?:[Tt ](\d{2}:\d{2})(?::(\d{2})(?:[.,](\d{1,20}))?)?(?:[Zz]|([+-]\d{2})(?::?(\d{2}))?)?)?$/;

/** The moment of a date as a person types it. */
function readDate(text) {
  const match = datePattern.exec(text);
  const [, day, time = "00:00", seconds = "00", fraction = "0", hours, minutes = "00"] = match ?? [];
  const date = new Date(`${day}T${time}:${seconds}.${fraction.slice(0, 3)}${hours ? `${hours}:${minutes}` : "Z"}`);
  if (!match || Number.isNaN(date.getTime())) {
    throw new Error("A date is expected, such as 2026-12-01 or 2026-12-01T10:00:00Z.");
  }
  return date;
}

/** Canonical base64 of bytes as a person types them. */
function base64Text(text) {
  const digits = text.replace(/\s+/g, "");
  const hexadecimal = /^0x((?:[0-9a-f]{2})*)$/i.exec(digits);
  if (hexadecimal) {
    const bytes = hexadecimal[1].match(/../g) ?? [];
    return btoa(bytes.map((byte) => String.fromCharCode(parseInt(byte, 16))).join(""));
  }
  if (!/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(digits)) {
    throw new Error("Base64 such as AAEC is expected, or hexadecimal digits in pairs after 0x.");
  }
  // The last digit may have bits that belong to no byte.
  if (btoa(atob(digits)) !== digits) throw new Error("The last digit of this base64 is damaged.");
  return digits;
}

/** Names the first number that a double does not hold as it is written. */
function roundedText(text) {
  const digits = (number) => number.replace(/e.*/i, "").replace(/[^\d]/g, "").replace(/^0+|0+$/g, "");
  const find = (node) => {
    if (node.type === "double" && !node.isSpecial) {
      const kept = String(Number(node.text));
      return digits(kept) === digits(node.text) ? "" : `${node.text} is kept as ${kept}.`;
    }
    const inner = node.items ?? node.members?.map(([, member]) => member) ?? [];
    for (const one of inner) {
      const found = find(one);
      if (found) return found;
    }
    return "";
  };
  return find(parse(text));
}

/** The JSON of the value in the fields. Throws an error with words for people. */
function typedJson() {
  const text = value().value;
  const trimmed = text.trim();
  switch (type()) {
    case "string": return quote(byId("editor-escapes").checked ? unescape(text) : text);
    case "bool": return document.querySelector("[name=editor-bool]:checked").value;
    case "integer": {
      const digits = trimmed.replace(/^\+/, "");
      if (!isInteger64(digits)) throw new Error("A whole number of 64 bits is expected, such as -12.");
      return String(BigInt(digits));
    }
    case "double": {
      if (/^(-?inf|nan|0x[0-9a-f]{16})$/i.test(trimmed)) return `{"$double":"${trimmed.toLowerCase()}"}`;
      if (!/^-?\d+(\.\d+)?([eE][+-]?\d+)?$/.test(trimmed)) {
        throw new Error("A number is expected, such as 0.5.");
      }
      const digits = trimmed.replace(/^(-?)0+(?=\d)/, "$1");
      const nearest = Number(digits);
      // The server refuses digits that a double does not keep; the page has shown which number it is.
      const isLong = digits.replace(/[eE].*$/, "").replace(/\D/g, "").length > 15;
      const kept = isLong && Number.isFinite(nearest) && nearest !== 0 ? String(nearest) : digits;
      return /[.eE]/.test(kept) ? kept : `${kept}.0`;
    }
    case "date":
      if (trimmed.startsWith("{")) return print(expectType(trimmed));
      readDate(trimmed);
      return `{"$date":${quote(trimmed)}}`;
    case "data": return `{"$data":"${base64Text(trimmed)}"}`;
    default: return print(expectType(trimmed));
  }
}

function expectType(text) {
  let node;
  try { node = parse(text); } catch (error) {
    throw error instanceof JsonError ? error : new Error("This nests too deeply to be read here.");
  }
  if (node.type !== type()) throw new Error(`This is of type ${node.type}, not ${type()}.`);
  return node;
}

async function submit(isPending) {
  const key = edited.key ?? byId("editor-key").value;
  const json = typedJson();
  const change = { key, type: type(), json, was: edited.was, isNew: edited.key === null };
  if (isPending) addToTransaction(change);
  else if (!(await save([change]))) throw new Error("Nothing was saved.");
  else takeOut(key);
}

async function takeFile(event) {
  const [file] = event.target.files;
  event.target.value = "";
  if (!file) return;
  await perform(byId("editor"), async () => {
    if (file.size > 4 * 1048576) throw new Error("The file is larger than 4 MiB.");
    const content = new Uint8Array(await file.arrayBuffer());
    let text = "";
    for (let start = 0; start < content.length; start += 8192) {
      text += String.fromCharCode(...content.subarray(start, start + 8192));
    }
    value().value = btoa(text);
    understand();
  });
}

export function startEditor() {
  on("edit", edit);
  // A change of the edited key while the editor is open.
  on("changed", (items) => {
    if (!byId("editor").open || edited.key === null) return;
    const item = items.find((one) => one.key === edited.key);
    if (!item || (item.json === undefined ? item.bytes === edited.bytes : item.json === edited.was)) return;
    show(byId("editor-changed"), true);
  });
  byId("add").addEventListener("click", () => edit(null));
  byId("editor-type").addEventListener("change", () => { clearProblem(byId("editor")); showFields(); });
  value().addEventListener("input", understand);
  byId("editor-escapes").addEventListener("change", (event) => {
    clearProblem(byId("editor"));
    try {
      value().value = event.target.checked ? escape(value().value) : unescape(value().value);
    } catch { event.target.checked = true; }
    showFields();
  });
  byId("editor-now").addEventListener("click", () => {
    value().value = new Date().toISOString().replace(/\.\d+/, "");
    understand();
  });
  byId("editor-file").addEventListener("change", takeFile);
  onSubmit(byId("editor"), (event) => submit(event.submitter?.value === "later"));
  // Control and Enter save, also in a field of several lines.
  byId("editor").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      byId("editor-form").requestSubmit(byId("editor-save"));
    }
  });
}
