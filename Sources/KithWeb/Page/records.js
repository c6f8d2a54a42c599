// Values that a store does not show and why, earlier values, and changes as they come.

import { app, deviceName, on, storeStatus } from "./app.js";
import { get, post } from "./api.js";
import {
  byId, bytes, h, moment, nameNode, plainName, setChildren, setText, show, toast,
} from "./dom.js";
import { valueElement } from "./values.js";
import { undo } from "./writes.js";

const changeLimit = 200;

const tell = (error) => toast(error.message, { isError: true });

function timeNode(milliseconds) {
  const date = new Date(milliseconds);
  const exact = Number.isNaN(date.getTime()) ? undefined : date.toISOString();
  return h("time", { datetime: exact, title: exact }, moment(milliseconds));
}

// Values that are not shown

let unshownState = "";

/** Reads them again if they changed: the numbers alone do not tell it, the digest and the newest refusal do. */
export function renderUnshown() {
  const store = storeStatus();
  const state = JSON.stringify([
    app.store, store?.digest, store?.hiddenKeys, store?.usage.bytes, store?.refusals, store?.lastRefusal,
  ]);
  if (byId("panel-unshown").hidden || state === unshownState) return;
  unshownState = state;
  loadUnshown();
}

/** A large value of an answer with `whole`; `pick` finds it there. It may be gone meanwhile. */
const wholeJSON = (path, parameters, pick) => async () => {
  const value = pick(await get(path, { ...parameters, whole: true }));
  if (!value) throw new Error("It is not there any more.");
  return value.json;
};

async function loadUnshown() {
  const { store } = app;
  if (!storeStatus()) return renderUnshownLists([], []);
  try {
    const { hidden, refusals } = await get("/api/unshown", { store });
    if (store === app.store) renderUnshownLists(hidden, refusals, store);
  } catch (error) {
    unshownState = "";
    if (error.status !== 404) tell(error);
  }
}

function renderUnshownLists(hidden, refusals, store) {
  show(byId("unshown-empty"), hidden.length + refusals.length === 0);
  show(byId("hidden-section"), hidden.length > 0);
  show(byId("refusals-section"), refusals.length > 0);
  setChildren(byId("hidden"), ...hidden.map((entry) => h("li", { "data-key": entry.key },
    h("div", { class: "record-head" }, h("strong", {}, nameNode(entry.key)),
      h("span", { class: "badge" }, "hidden: does not fit")),
    h("div", { class: "record-value" }, valueElement(entry, wholeJSON(
      "/api/unshown", { store },
      ({ hidden }) => hidden.find(({ key }) => key === entry.key)))),
    h("small", {}, `${entry.type}, ${bytes(entry.bytes)}, written by `,
      nameNode(deviceName(entry.device)), " on ", timeNode(entry.writtenMilliseconds)))));
  setChildren(byId("refusals"), ...refusals.map((refusal) => refusalItem(refusal, store)));
}

const reasons = {
  quota: "did not fit when it was published",
  initialSync: "lost to the account's own values on joining",
};

function refusalItem({ number, reason, writtenMilliseconds, writes }, store) {
  const run = (path, body, text) => async (event) => {
    event.currentTarget.disabled = true;
    const button = event.currentTarget;
    try {
      await post(path, { store, ...body });
      toast(text);
    } catch (error) {
      tell(error);
    } finally {
      button.disabled = false;
      loadUnshown();
    }
  };
  return h("li", { "data-number": number },
    h("div", { class: "record-head" },
      h("strong", {}, `Refusal ${number}`),
      h("span", { class: "badge" }, `refused: ${reasons[reason] ?? reason}`),
      h("div", { class: "actions" },
        h("button", {
          type: "button", "aria-label": `Write refusal ${number} again`,
          onclick: run("/api/unshown/again", { number }, `The values of refusal ${number} were written again.`),
        }, "Write again"),
        h("button", {
          type: "button", class: "quiet danger", "aria-label": `Forget refusals up to ${number}`,
          onclick: run("/api/unshown/clear", { through: number }, "Forgotten."),
        }, number > 1 ? "Forget up to here" : "Forget"))),
    h("ul", { class: "writes" }, ...writes.map((write) => h("li", {},
      nameNode(write.key), " ", valueElement(write, wholeJSON(
        "/api/unshown", { store },
        ({ refusals }) => refusals.find((one) => one.number === number)
          ?.writes.find(({ key }) => key === write.key))),
      write.bytes !== undefined && h("small", {}, ` ${write.type}, ${bytes(write.bytes)}`)))),
    h("small", {}, "written by this device on ", timeNode(writtenMilliseconds)));
}

// History

let historyKey = null;

async function loadHistory() {
  if (byId("panel-history").hidden) return;
  const { store } = app;
  show(byId("history-off"), app.status?.keepsHistory === false);
  show(byId("history-all"), historyKey !== null);
  setText(byId("history-title"), historyKey === null ? "Earlier values of all keys" : "Earlier values of ");
  if (historyKey !== null) byId("history-title").append(nameNode(historyKey));
  if (!storeStatus()) return renderHistory([]);
  try {
    const { values } = await get("/api/history", { store, key: historyKey ?? undefined, limit: 50 });
    if (store === app.store) renderHistory(values, store);
  } catch (error) {
    if (error.status === 404) renderHistory([]);
    else tell(error);
  }
}

function renderHistory(values, store) {
  show(byId("history-empty"), values.length === 0);
  setChildren(byId("history"), ...values.map((value) => h("li", { "data-number": value.number },
    h("div", { class: "record-head" }, h("strong", {}, nameNode(value.key)),
      h("div", { class: "actions" }, h("button", {
        type: "button", "aria-label": `Bring back ${plainName(value.key)} as of number ${value.number}`,
        onclick: () => undo(store, value.key, value.number),
      }, "Bring back"))),
    h("div", { class: "record-value" }, valueElement(value, wholeJSON(
      "/api/history", { store, key: value.key, limit: 1000 },
      ({ values }) => values.find(({ number }) => number === value.number)))),
    h("small", {}, `number ${value.number}, until `, timeNode(value.endedMilliseconds),
      ...(value.endedBy === undefined ? [", ended by the quota"]
        : value.endedBy === app.status?.device ? [", ended by this device"]
          : [", ended by ", nameNode(deviceName(value.endedBy))])))));
}

// Changes as they come

const reasonWords = {
  ownWrite: "written here", externalChange: "from another device",
  initialSyncChange: "from the account, on joining", quotaViolationChange: "by the quota",
  accountChange: "another account",
};

function addChange({ reason, items }) {
  const list = byId("changes");
  const time = new Date();
  for (const item of items.slice(-changeLimit)) {
    list.prepend(h("li", { "data-key": item.key },
      h("time", { datetime: time.toISOString() }, time.toLocaleTimeString("en-GB")),
      h("span", { class: `badge is-${reason}` }, reasonWords[reason] ?? reason),
      h("strong", {}, nameNode(item.key)),
      h("span", { class: "record-value" }, valueElement(item))));
  }
  while (list.childElementCount > changeLimit) list.lastElementChild.remove();
  show(byId("changes-empty"), list.childElementCount === 0);
  if (byId("panel-changes").hidden) {
    unread += items.length;
    setText(byId("changes-count"), String(unread));
  }
}

let unread = 0;

export function clearRecords() {
  for (const list of ["changes", "hidden", "refusals", "history"]) setChildren(byId(list));
  show(byId("changes-empty"), true);
  unread = 0;
  setText(byId("changes-count"), "");
  historyKey = null;
  unshownState = "";
  openPanel();
}

/** Fills the panel that was opened. */
function openPanel() {
  if (!byId("panel-changes").hidden) { unread = 0; setText(byId("changes-count"), ""); }
  if (app.status) { renderUnshown(); loadHistory(); }
}

export function startRecords(openTab) {
  on("tab", openPanel);
  on("recorded", loadHistory);
  on("change", (change) => {
    addChange(change);
    clearTimeout(reload);
    reload = setTimeout(loadHistory, 300);
  });
  on("history", (entry) => {
    historyKey = entry.key;
    openTab("history");
  });
  byId("history-all").addEventListener("click", () => { historyKey = null; loadHistory(); });
}

let reload = 0;
