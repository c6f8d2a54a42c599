// The chosen store: which one, how full it is; its import, export and exchange.

import { app, deviceName, emit, storeStatus } from "./app.js";
import { get, post, send } from "./api.js";
import {
  byId, bytes, clearProblem, count, h, nameNode, openDialog, perform, plainName, redraw,
  setChildren, setText, show, showProblem, toast,
} from "./dom.js";

export function renderStores() {
  const { status } = app;
  if (!status) return;
  const names = status.stores.map((store) => store.identifier);
  for (const name of [status.store, app.store]) if (name && !names.includes(name)) names.push(name);
  names.sort();
  const isRedrawn = redraw(byId("stores"), [names, app.store], () => [
    ...names.map((name) => h("option", { value: name }, plainName(name))),
    h("option", { value: "" }, "Another store …"),
  ]);
  if (isRedrawn) byId("stores").value = app.store;
  renderFill();
  renderOverview();
}

function renderFill() {
  const store = storeStatus();
  const notes = [];
  show(byId("fill"), store !== undefined);
  if (store) {
    const { usage } = store;
    meter("fill-bytes", usage.bytes, usage.policy.totalBytes,
      `${bytes(usage.bytes)} of ${bytes(usage.policy.totalBytes)}`);
    meter("fill-keys", usage.keys, usage.policy.keys,
      `${count(usage.keys)} of ${count(usage.policy.keys, "key")}`);
    if (store.drafts > 0) notes.push([`${count(store.drafts, "write")} to publish.`]);
    if (store.missing) notes.push(["A part was damaged on this disk, and is missing."]);
    const partial = partText(app.store);
    if (partial) notes.push([partial]);
    if (store.quarantined > 0) notes.push([`${count(store.quarantined)} invalid writes are set aside.`]);
    if (store.policyMismatches.length > 0) {
      notes.push([`The limits differ on ${store.policyMismatches.map(deviceName).map(plainName).join(", ")}.`,
        " That store is not exchanged."]);
    }
  } else {
    notes.push(["This store does not exist yet. Its first write creates it, on all devices, for ever."]);
  }
  setText(byId("store-notes"), notes.flat().join(" "));
  const unshown = store ? store.hiddenKeys + store.refusals : 0;
  setText(byId("unshown-count"), unshown > 0 ? String(unshown) : "");
}

const isInPart = (identifier) => app.status.storesInPart.includes(identifier);

/** Empty if this device has the store whole, as far as it knows. */
function partText(identifier) {
  if (!isInPart(identifier)) return "";
  const names = storeStatus(identifier).authorsOverLimit.map(deviceName).map(plainName).sort().join(", ");
  return `In part: the rest of ${names} comes once a program here opens it.`;
}

function meter(id, value, limit, text) {
  const element = byId(id);
  const share = limit > 0 ? Math.min(value / limit, 1) : 0;
  element.setAttribute("aria-valuemin", 0);
  element.setAttribute("aria-valuemax", limit);
  element.setAttribute("aria-valuenow", value);
  element.setAttribute("aria-valuetext", text);
  element.classList.toggle("is-near", share >= 0.8 && share < 0.95);
  element.classList.toggle("is-full", share >= 0.95);
  element.firstElementChild.style.inlineSize = `${value > 0 ? Math.max(share * 100, 0.5) : 0}%`;
  const percent = Math.round(share * 100);
  const note = share >= 0.95 ? ", nearly full" : "";
  setText(byId(`${id}-text`), `${text} (${value > 0 && percent === 0 ? "<1" : percent} %${note})`);
}

/** All stores at a glance, if there are several. */
function renderOverview() {
  const list = byId("store-list");
  const { stores } = app.status;
  show(list, stores.length > 1);
  if (stores.length < 2) return;
  const shown = [app.store,
    stores.map((one) => [one.identifier, one.usage, one.hiddenKeys, one.refusals, isInPart(one.identifier)])];
  const hadFocus = list.contains(document.activeElement);
  const isRedrawn = redraw(list, shown, () => stores.map(({ identifier, usage, hiddenKeys, refusals }) => {
    const share = Math.max(usage.bytes / usage.policy.totalBytes, usage.keys / usage.policy.keys);
    const bar = h("span", { class: `bar${share >= 0.95 ? " is-full" : share >= 0.8 ? " is-near" : ""}` },
      h("span"));
    bar.firstElementChild.style.inlineSize = `${Math.min(share * 100, 100)}%`;
    const unshown = hiddenKeys + refusals;
    return h("li", {}, h("button", {
      type: "button", "aria-pressed": String(identifier === app.store),
      onclick: () => emit("choose", identifier),
    }, nameNode(identifier), bar, h("small", {},
      `${count(usage.keys, "key")}, ${bytes(usage.bytes)}${unshown ? `, ${unshown} not shown` : ""}`
        + (isInPart(identifier) ? ", in part" : ""))));
  }));
  if (isRedrawn && hadFocus) list.querySelector("[aria-pressed=true]")?.focus();
}

// Import

const trialPause = 300;
/** Of the newest trial; an older one shows nothing any more. */
let trialNumber = 0;
let trialTimer = 0;

const chosenFile = () => byId("import-file").files[0] ?? null;

/** Imports with the prefix as it is now. */
async function runImport(isDryRun) {
  const file = chosenFile();
  if (file.size > 8 * 1048576) throw new Error("The file is larger than 8 MiB.");
  return send("/api/import",
    { store: app.store, dryRun: isDryRun, prefix: byId("import-prefix").value || undefined }, file);
}

/** Says what an import would do. No button waits for it: a click meanwhile counts. */
async function tryIt() {
  endTrial();
  if (!chosenFile()) return resetImport();
  const mine = trialNumber;
  try {
    const report = await runImport(true);
    if (mine !== trialNumber) return;
    clearProblem(byId("import"));
    showReport(report);
    byId("import-do").disabled = report.imported === 0;
  } catch (error) {
    if (mine !== trialNumber) return;
    resetImport();
    showProblem(byId("import"), error);
  }
}

function endTrial() {
  clearTimeout(trialTimer);
  trialNumber += 1;
}

function showReport({ format, imported, refused, warning, dryRun }) {
  setChildren(byId("import-report"),
    h("p", {}, `${format}: ${count(imported, "value")} ${dryRun ? "can be imported" : "imported"}`
      + `${refused.length ? `, ${count(refused.length)} refused` : ""}.`),
    warning && h("p", {}, plainName(warning)),
    refused.length > 0 && h("ul", { class: "refused" }, ...refused.slice(0, 200).map((one) =>
      h("li", {}, nameNode(one.key), `: ${plainName(one.reason)}`))));
}

function resetImport() {
  clearProblem(byId("import"));
  setChildren(byId("import-report"));
  byId("import-do").disabled = true;
}

async function exportStore() {
  try {
    const response = await get("/api/export", { store: app.store });
    const link = h("a", {
      href: URL.createObjectURL(await response.blob()), download: `${app.store}.json`,
    });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
    toast(["All shown values of ", { name: app.store }, " were exported."]);
  } catch (error) {
    toast(error.message, { isError: true });
  }
}

async function sync() {
  const button = byId("sync");
  const { store } = app;
  button.disabled = true;
  setText(button, "Exchanging …");
  try {
    const { incomplete, unpublished } = await post("/api/sync", { store, seconds: 5 });
    const partial = partText(store);
    if (incomplete.length === 0 && !unpublished) {
      toast(partial ? ["All other devices have what is here of ", { name: store }, `. ${partial}`]
        : ["All other devices are up to date in ", { name: store }, "."]);
    } else {
      toast([incomplete.length > 0 ? `Not yet complete: ${incomplete.map(plainName).join(", ")}. ` : "",
        unpublished ? "Some writes wait until another device is connected." : ""].join(""));
    }
  } catch (error) {
    toast(error.message, { isError: true });
  } finally {
    button.disabled = false;
    setText(button, "Sync now");
  }
}

export function startStores() {
  byId("stores").addEventListener("change", (event) => {
    if (event.target.value) return emit("choose", event.target.value);
    event.target.value = app.store;
    byId("new-store-name").value = "";
    openDialog(byId("new-store"));
  });
  byId("new-store").addEventListener("submit", () => {
    const name = byId("new-store-name").value.trim();
    if (name) emit("choose", name);
  });
  byId("sync").addEventListener("click", sync);
  byId("export").addEventListener("click", exportStore);
  byId("import-open").addEventListener("click", () => {
    byId("import-form").reset();
    endTrial();
    resetImport();
    openDialog(byId("import"));
  });
  byId("import-file").addEventListener("change", () => { resetImport(); tryIt(); });
  byId("import-prefix").addEventListener("input", () => {
    endTrial();
    trialTimer = setTimeout(tryIt, trialPause);
  });
  byId("import-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    endTrial();
    if (!chosenFile()) return;
    const isDone = await perform(byId("import"), async () => showReport(await runImport(false)));
    if (!isDone) return;
    byId("import-do").disabled = true;
    toast("The file was imported.");
  });
}
