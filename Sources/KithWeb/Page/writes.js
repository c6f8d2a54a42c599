// Writes: one edit at once, or several as a transaction. Each names the value that it replaces, so
// that no other device's change is lost unseen.

import { app, emit, storeStatus } from "./app.js";
import { ApiError, get, post } from "./api.js";
import {
  byId, bytes, clearProblem, count, h, nameNode, onSubmit, openDialog, perform, plainName,
  setChildren, setText, show, toast,
} from "./dom.js";
import { shownJSON, valueElement } from "./values.js";

/** The entry that a store shows now. */
async function shownEntry(store, key) {
  try {
    return await get("/api/value", { store, key });
  } catch (error) {
    if (error.status === 404) return { key, missing: true };
    throw error;
  }
}

/** The value's JSON that is shown now; null if the key is missing. */
export const shownJson = async (entry) =>
  entry.json ?? (await shownEntry(app.store, entry.key)).json ?? null;

/**
 * Writes edits { key, json? (left out: removes), was } as one transaction. If a key was changed
 * meanwhile, a person chooses. Returns whether it is done.
 */
export async function save(edits, store = app.store) {
  let rest = edits;
  for (;;) {
    try {
      const operation = ({ key, json }) => (json === undefined || json === null ? { key } : { key, json });
      await post("/api/write", {
        store, create: storeStatus(store) ? undefined : true,
        writes: rest.map(operation),
        expecting: rest.map(({ key, was }) => operation({ key, json: was })),
      });
      break;
    } catch (error) {
      if (error.code !== "unexpectedValue") throw withNumbers(error, store);
      const chosen = await askAboutConflict(rest, store, error);
      if (!chosen) return false;
      rest = chosen;
      if (rest.length === 0) return true;
    }
  }
  announce(rest, store);
  return true;
}

/** A refusal by the quota says how full the store is. */
function withNumbers(error, store) {
  const usage = storeStatus(store)?.usage;
  if (error.code !== "quotaExceeded" || !usage) return error;
  const { policy } = usage;
  return new ApiError(error.code, `${error.message} The store now holds ${bytes(usage.bytes)} of `
    + `${bytes(policy.totalBytes)}, and ${count(usage.keys)} of ${count(policy.keys, "key")}.`, error.status);
}

function announce(edits, store) {
  if (edits.length > 1) return toast(`${edits.length} edits were saved as one transaction.`);
  const [{ key, json }] = edits;
  const action = app.status?.keepsHistory ? { label: "Undo", run: () => undo(store, key) } : undefined;
  toast([{ name: key }, json === undefined || json === null ? " was removed." : " was saved."], { action });
}

export async function undo(store, key, to) {
  try {
    const answer = await post("/api/undo", { store, key, to });
    toast([{ name: answer.key }, answer.missing ? " is missing again." : " has its earlier value again."]);
    emit("recorded");
  } catch (error) {
    toast(error.message, { isError: true });
  }
}

// Conflicts

async function askAboutConflict(edits, store, error) {
  const currents = await Promise.all(edits.map(({ key }) => shownEntry(store, key)));
  const currentJson = (index) => currents[index].json ?? null;
  const changed = edits.map((edit, index) => currentJson(index) !== (edit.was ?? null));
  // It changed back meanwhile: try once more, unless the server disagrees for another reason.
  if (!changed.includes(true)) {
    if (edits.some((edit) => edit.isRetried)) throw error;
    return edits.map((edit) => ({ ...edit, isRetried: true }));
  }
  const answers = await chooseEach(edits, currents, changed);
  if (!answers) return null;
  return edits.flatMap((edit, index) => {
    if (!changed[index]) return [edit];
    return answers[index] ? [{ ...edit, was: currentJson(index) }] : [];
  });
}

function chooseEach(edits, currents, changed) {
  const dialog = byId("conflict");
  // A person who adds a key did not mean to replace a value.
  const usual = (index) => (edits[index].isNew ? "shown" : "mine");
  const side = (index, value, label, entry) => h("label", { class: "side" },
    h("input", {
      type: "radio", name: `conflict-${index}`, value, checked: value === usual(index), required: true,
    }),
    h("span", { class: "side-title" }, label), h("span", { class: "side-value" }, valueElement(entry)));
  setChildren(byId("conflict-list"), ...edits.flatMap((edit, index) => {
    if (!changed[index]) return [];
    return [h("fieldset", {}, h("legend", {}, nameNode(edit.key)),
      side(index, "shown", "Keep the value shown now", currents[index]),
      side(index, "mine", "Save mine", edit.json === undefined ? { ...edit, removed: true } : edit))];
  }));
  const conflicts = edits.filter((_, index) => changed[index]);
  setText(byId("conflict-title"), conflicts.every((edit) => edit.isNew)
    ? (conflicts.length === 1 ? "This key exists already" : "Some keys exist already")
    : (conflicts.length === 1 ? "This value was changed meanwhile" : "Some values were changed meanwhile"));
  openDialog(dialog);
  return new Promise((resolve) => {
    dialog.returnValue = "";
    dialog.addEventListener("close", () => {
      if (dialog.returnValue !== "choose") return resolve(null);
      resolve(edits.map((_, index) =>
        dialog.querySelector(`[name=conflict-${index}]:checked`)?.value === "mine"));
    }, { once: true });
  });
}

// The transaction

export function addToTransaction(edit) {
  // A second edit of a key replaces the first, but expects the same value.
  const earlier = app.pending.get(edit.key);
  app.pending.set(edit.key, earlier ? { ...edit, was: earlier.was } : edit);
  renderTray();
}

export function takeOut(key) {
  if (app.pending.delete(key)) renderTray();
}

function renderTray() {
  const edits = [...app.pending.values()];
  show(byId("tray"), edits.length > 0);
  setText(byId("tray-title"), `Transaction: ${count(edits.length, "edit")}`);
  setChildren(byId("tray-list"), ...edits.map((edit) => h("li", {},
    h("span", { class: "what" }, edit.json === undefined ? "Remove " : "Set ", nameNode(edit.key)),
    edit.json !== undefined && h("span", { class: "tray-value" }, valueElement(edit)),
    h("button", {
      type: "button", class: "quiet", "aria-label": `Take ${plainName(edit.key)} out of the transaction`,
      onclick: () => takeOut(edit.key),
    }, "Take out"))));
  emit("pending");
}

function discardTransaction() {
  app.pending.clear();
  clearProblem(byId("tray"));
  renderTray();
}

// Removing

let removing = null;

async function askToRemove(entry) {
  // The value that is shown now: another device's change after this is not removed unseen.
  removing = { entry, was: shownJson(entry) };
  removing.was.catch(() => { /* It is awaited, and told, when the person removes. */ });
  setChildren(byId("remove-key"), nameNode(entry.key));
  setChildren(byId("remove-value"), valueElement(entry, shownJSON(app.store, entry.key)));
  setText(byId("remove-note"), app.status?.keepsHistory
    ? "It is removed on all devices. The history of this device keeps the value."
    : "It is removed on all devices. This device keeps no history, so nothing brings the value back.");
  openDialog(byId("remove"));
}

async function remove(isPending) {
  const { entry, was } = removing;
  const edit = { key: entry.key, was: await was };
  if (isPending) return addToTransaction(edit);
  if (!(await save([edit]))) throw new Error("Nothing was removed.");
  takeOut(edit.key);
}

export function startWrites(on) {
  on("remove", askToRemove);
  onSubmit(byId("remove"), (event) => remove(event.submitter?.value === "later"));
  byId("tray-save").addEventListener("click", () => perform(byId("tray"), async () => {
    // Edits that are added meanwhile stay.
    const edits = [...app.pending.values()];
    if (!(await save(edits))) return;
    for (const edit of edits) if (app.pending.get(edit.key) === edit) app.pending.delete(edit.key);
    renderTray();
  }));
  byId("tray-discard").addEventListener("click", discardTransaction);
}
