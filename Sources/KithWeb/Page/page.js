// The page of `kith web`: its start, its stream of events, and the answer at the top.

import { renderAccount, startAccount } from "./account.js";
import { app, emit, now, on } from "./app.js";
import { follow, openPage } from "./api.js";
import { renderCarriers } from "./carriers.js";
import { byId, count, h, nodes, plainName, redraw, setText, show, toast } from "./dom.js";
import { renderDevices, startDevices } from "./devices.js";
import { startEditor } from "./editor.js";
import { changeEntries, showEntries, startKeys } from "./keys.js";
import { renderMap, startMap } from "./map.js";
import { showPairing, startPairing } from "./pairing.js";
import { clearRecords, renderUnshown, startRecords } from "./records.js";
import { renderStores, startStores } from "./stores.js";
import { verdict } from "./verdict.js";
import { startWrites } from "./writes.js";

let stream = null;
let isNewStore = true;
/** Whether nobody has chosen a store. */
let isUsualStore = false;

// The answer

const signs = {
  synced: "M12 33l13 13l27-29", partly: "M12 33l13 13l27-29", syncing: "M32 12v36M16 34l16 16l16-16",
  waiting: "M14 32h36", alone: "M32 14v36M14 32h36", problem: "M32 12v26M32 49v1",
  signedOut: "M14 32h36M36 18l14 14l-14 14", offline: "M18 18l28 28M46 18l-28 28",
};

function renderState() {
  const { kind, title, detail } = verdict(app, now());
  const hero = byId("hero");
  hero.className = `card hero is-${kind}`;
  byId("state-sign").setAttribute("d", signs[kind]);
  setText(byId("state"), title);
  redraw(byId("state-detail"), detail, () => nodes(detail));
  document.title = `${title.replace(/[. …]+$/, "")} · Kith`;
  document.body.classList.toggle("is-old", app.connection !== "live" && app.status !== null);
  // Without a status nothing is known: an empty store would look like lost data.
  document.body.classList.toggle("is-blank", app.status === null);
  for (const part of document.querySelectorAll("main > :not(#hero), .top-actions, #tray")) {
    part.inert = app.connection === "ended";
  }
  show(byId("retry"), ["lost", "crowded"].includes(app.connection));
  renderUnshownNote();
}

function renderUnshownNote() {
  const stores = app.status?.stores.filter((store) => store.hiddenKeys + store.refusals > 0) ?? [];
  show(byId("state-note"), stores.length > 0);
  if (stores.length === 0) return;
  const total = stores.reduce((sum, store) => sum + store.hiddenKeys + store.refusals, 0);
  setText(byId("state-note"), `${count(total)} ${total === 1 ? "value or write is" : "values or writes are"}`
    + ` not shown, in ${stores.map((store) => plainName(store.identifier)).join(", ")}`);
  byId("state-note").dataset.store = stores.some((store) => store.identifier === app.store)
    ? app.store : stores[0].identifier;
}

function renderProblems() {
  const problems = app.status?.problems ?? [];
  show(byId("problems"), problems.length > 0);
  redraw(byId("problems-list"), problems,
    () => problems.map(({ message }) => h("li", {}, plainName(message))));
}

function render() {
  const parts = app.status
    ? [renderState, renderProblems, renderAccount, renderDevices, renderMap, renderCarriers, renderStores, renderUnshown,
      renderNode]
    : [renderState];
  for (const part of parts) {
    try { part(); } catch (error) { console.error(error); }
  }
}

function renderNode() {
  const { status } = app;
  setText(byId("node"), [
    status.isOwnNode ? "This page's program runs the node: the device exchanges while it runs."
      : status.processID ? "Another program runs the node." : "No node runs.",
    status.listening?.length ? `It listens on ${status.listening.map(plainName).join(", ")}.` : "",
    `Directory ${plainName(status.directory ?? "")}. Kith ${plainName(status.software ?? "")}`,
  ].join(" "));
}

// The stream

const handlers = {
  status(status) {
    for (const list of ["devices", "peers", "stores", "carriers", "problems"]) status[list] ??= [];
    app.status = status;
    app.skew = status.now - Date.now();
    setConnection("live");
    const isOther = isUsualStore && status.store !== app.store;
    isUsualStore = false;
    if (isOther) choose(status.store);
    else render();
  },
  values({ store, entries }) {
    if (store !== app.store) return;
    // A status that did not change is not sent again.
    if (app.connection === "away") { setConnection("live"); render(); }
    if (!isUsualStore) remember(store);
    showEntries(entries, isNewStore);
    isNewStore = false;
    emit("changed", entries);
  },
  change(change) {
    if (change.store !== app.store) return;
    changeEntries(change.items);
    emit("change", change);
    emit("changed", change.items);
  },
  pairing: showPairing,
  away({ message }) { setConnection("away", message); render(); },
  lost(seconds, error) {
    const isCrowded = error?.code === "windows";
    setConnection(isCrowded ? "crowded" : "lost",
      `${isCrowded ? `${error.message}. ` : ""}Next try in ${seconds} s.`);
    render();
  },
  ended(message) { setConnection("ended", message); render(); },
};

function setConnection(connection, message = "") {
  if (connection === "live" && ["lost", "away"].includes(app.connection)) toast("Connected again.");
  app.connection = connection;
  app.message = message;
  if (connection !== "live") emit("offline");
}

/** Shows another store. */
function choose(store) {
  if (store === app.store) return;
  if (app.pending.size > 0) {
    byId("stores").value = app.store;
    return toast("Save or discard the transaction first.", { isError: true });
  }
  app.store = store;
  isNewStore = true;
  showEntries([], true);
  byId("search").value = "";
  clearRecords();
  byId("store-section").setAttribute("aria-label", `Store ${plainName(store)}`);
  stream?.stop();
  stream = follow(store, handlers);
  render();
}

function remember(store) {
  try { sessionStorage.setItem("kith-store", store); } catch { /* The usual store shows next time. */ }
}

// Tabs

const tabNames = ["keys", "unshown", "history", "changes"];

function openTab(name) {
  for (const one of tabNames) {
    const tab = byId(`tab-${one}`);
    tab.setAttribute("aria-selected", String(one === name));
    tab.tabIndex = one === name ? 0 : -1;
    show(byId(`panel-${one}`), one === name);
  }
  byId(`tab-${name}`).scrollIntoView({ block: "nearest", inline: "nearest" });
  emit("tab", name);
}

function startTabs() {
  for (const [index, name] of tabNames.entries()) {
    const tab = byId(`tab-${name}`);
    tab.addEventListener("click", () => openTab(name));
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const next = tabNames[(index + step + tabNames.length) % tabNames.length];
      openTab(next);
      byId(`tab-${next}`).focus();
    });
  }
}

function onShortcut(event) {
  const isTyping = event.target.closest("input, textarea, select, dialog");
  if (event.key === "/" && !isTyping && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    openTab("keys");
    byId("search").focus();
  }
}

async function start() {
  startAccount();
  startDevices();
  startEditor();
  startKeys();
  startMap();
  startPairing();
  startRecords(openTab);
  startStores();
  startTabs();
  startWrites(on);
  on("choose", choose);
  document.addEventListener("keydown", onShortcut);
  for (const button of document.querySelectorAll("[data-close]")) {
    button.addEventListener("click", () => button.closest("dialog").close());
  }
  // A new token of the same address changes only the fragment.
  addEventListener("hashchange", () => { if (location.hash) location.reload(); });
  byId("skip").addEventListener("click", (event) => {
    event.preventDefault();
    byId("store-section").focus();
  });
  byId("retry").addEventListener("click", () => stream?.retry());
  byId("state-note").addEventListener("click", (event) => {
    choose(event.currentTarget.dataset.store);
    openTab("unshown");
    byId("store-section").scrollIntoView();
  });
  // A hidden page follows no changes, so its title must not tell a state.
  document.addEventListener("visibilitychange", () => { if (document.hidden) document.title = "Kith"; });
  setInterval(() => { if (!document.hidden) render(); }, 10000);
  render();
  await connect();
}

async function connect() {
  for (;;) {
    try {
      await openPage();
      break;
    } catch (error) {
      if (error.status === 401) return handlers.ended(error.message);
      handlers.lost(2);
      await new Promise((resolve) => setTimeout(resolve, 2000));
    }
  }
  let store = null;
  try { store = sessionStorage.getItem("kith-store"); } catch { /* The usual store. */ }
  isUsualStore = store === null;
  // The first status names the usual store; it is nearly always this one.
  choose(store ?? "default");
}

start();
