// The list of devices, and what a person does with one: rename, revoke, meet.

import { app, deviceName, isSignedIn, now } from "./app.js";
import { get, post } from "./api.js";
import {
  ago, byId, count, duration, h, moment, nameNode, onSubmit, openDialog, plainName, redraw, setChildren,
  setText, show, showProblem, toast,
} from "./dom.js";
import { stateIcon } from "./map.js";
import { deviceState, lack } from "./verdict.js";

/** By id: the parts of a device's card. They are changed in place, so the focus stays. */
const cards = new Map();

export function renderDevices() {
  show(byId("devices-card"), isSignedIn());
  if (!isSignedIn()) return;
  const { devices } = app.status;
  const members = devices.filter((device) => device.isMember);
  const former = devices.filter((device) => !device.isMember);
  placeCards(byId("devices"), members);
  placeCards(byId("former"), former);
  renderVain(app.status.addresses.filter((one) => one.source === "named" && one.reason));
  for (const [id, card] of cards) {
    if (devices.some((device) => device.id === id)) continue;
    card.item.remove();
    cards.delete(id);
  }
  show(byId("former-section"), former.length > 0);
  setText(byId("former-count"), count(former.length, "former device"));
}

/** Addresses that a person named, and that lead to no device. */
function renderVain(addresses) {
  const list = byId("vain");
  show(list, addresses.length > 0);
  redraw(list, addresses.map((one) => [one.address, one.reason]), () => addresses.map((one) => h("li", {},
    plainName(one.reason), " ",
    h("button", { type: "button", class: "quiet", onclick: () => forget(one.address) },
      `Forget ${plainName(one.address)}`))));
}

async function forget(address) {
  try {
    await post("/api/devices/forget", { address });
  } catch (error) {
    toast(error.message, { isError: true });
  }
}

function placeCards(list, devices) {
  for (const [index, device] of devices.entries()) {
    const { item } = updateCard(device);
    if (list.children[index] !== item) list.insertBefore(item, list.children[index] ?? null);
  }
}

function updateCard(device) {
  let card = cards.get(device.id);
  if (!card) {
    card = createCard(device.id);
    cards.set(device.id, card);
  }
  const state = deviceState(device, app.status, now());
  const list = facts(device, state);
  const text = JSON.stringify([device.name, device.isMember, state, list.map((item) => item.textContent)]);
  if (card.text === text) return card;
  card.text = text;
  card.device = device;
  const name = plainName(device.name);
  card.item.className = `kind-${state.kind}`;
  setChildren(card.icon, stateIcon(state.kind, 28));
  setChildren(card.name, nameNode(device.name));
  setText(card.badge, state.text);
  setText(card.fingerprint, device.fingerprint);
  setChildren(card.facts, ...list);
  card.rename.setAttribute("aria-label", `Rename ${name}`);
  card.revoke.setAttribute("aria-label", `Revoke ${name}`);
  show(card.rename, device.isMember);
  show(card.revoke, device.isMember && !device.isThisDevice);
  return card;
}

function createCard(id) {
  const card = {
    icon: h("span", { class: "state-icon" }), name: h("strong"), badge: h("span", { class: "badge" }),
    fingerprint: h("code", { class: "fingerprint", title: "Fingerprint" }),
    facts: h("ul", { class: "facts" }),
    rename: h("button", { type: "button", class: "quiet", onclick: () => rename(card.device) }, "Rename"),
    revoke: h("button", { type: "button", class: "quiet danger", onclick: () => revoke(card.device) },
      "Revoke"),
  };
  card.item = h("li", { "data-device": id }, card.icon,
    h("div", { class: "who" }, card.name, card.badge, card.fingerprint, card.facts),
    h("div", { class: "actions" }, card.rename, card.revoke));
  return card;
}

function facts(device, state) {
  const { status } = app;
  const list = [];
  const add = (...parts) => list.push(h("li", {}, ...parts));
  if (device.isThisDevice) {
    add(clockText(status.clock));
  } else if (device.isMember) {
    if (state.kind === "synced" || state.kind === "behind") add("seen now");
    else if (device.lastSeenMilliseconds !== undefined) add(`seen ${ago(device.lastSeenMilliseconds, now())}`);
    else add(device.wasSeen ? "not seen since the node started" : "never seen");
    // Without an entry, nothing is known of it.
    if (Object.keys(device.behind ?? {}).length > 0) add(hasText(device));
    if (device.clockOffsetMilliseconds !== undefined) {
      const offset = device.clockOffsetMilliseconds;
      add(Math.abs(offset) < 1000 ? "clock agrees"
        : `clock ${duration(offset)} ${offset > 0 ? "ahead" : "late"}`);
    }
  }
  const software = device.software ?? (device.isThisDevice ? status.software : undefined);
  if (software) add("version ", nameNode(software));
  const address = status.peers.findLast((peer) => peer.device === device.id)?.address
    ?? device.addresses?.[0] ?? (device.isThisDevice ? status.listening?.[0] : undefined);
  if (address && device.isMember) add(nameNode(address));
  if (state.kind === "away") {
    for (const call of status.addresses.filter((one) => one.device === device.id && one.reason)) {
      add(`${plainName(call.reason)}, ${ago(call.triedMilliseconds, now())}`);
    }
  }
  if (device.enrolledMilliseconds) add(...enrolment(device));
  return list;
}

function hasText(device) {
  const lacking = lack(device);
  if (lacking === 0) return app.status.storesInPart.length === 0 ? "has everything" : "has what is here";
  const stores = Object.entries(device.behind).filter(([, missing]) => missing > 0);
  return `lacks ${count(lacking, "change set")} of ${stores.map(([name]) => plainName(name)).join(", ")}`;
}

function clockText(clock) {
  if (clock.isWorthless) return "clock cannot be right";
  if (clock.follows) return `clock follows ${plainName(deviceName(clock.follows))}`;
  return clock.isSynchronised ? "clock synchronised" : "clock not synchronised by the system";
}

function enrolment({ enroller, enrolledMilliseconds }) {
  const day = moment(enrolledMilliseconds).replace(/,.*/, "");
  if (enroller === "creation") return [`created the account on ${day}`];
  if (enroller === "recoveryKey") return [`admitted by the recovery key on ${day}`];
  return enroller ? [`admitted on ${day} by `, nameNode(deviceName(enroller))] : [];
}

// Rename

function rename(device) {
  const dialog = byId("rename");
  byId("rename-name").value = device.name;
  dialog.dataset.device = device.id;
  openDialog(dialog);
  byId("rename-name").select();
}

// Revoke

let revoked = null;

async function revoke(device) {
  // Until its dependents are known.
  revoked = null;
  const dialog = byId("revoke");
  dialog.dataset.device = device.id;
  setChildren(byId("revoke-list"));
  setChildren(byId("revoke-name"), nameNode(device.name));
  byId("revoke-fingerprint").textContent = device.fingerprint;
  byId("revoke-sure").checked = false;
  byId("revoke-do").disabled = true;
  show(byId("revoke-dependents"), false);
  openDialog(dialog);
  try {
    const { devices } = await get("/api/devices/dependents", { device: device.id });
    if (dialog.dataset.device !== device.id) return;
    const own = app.status.device;
    const dependents = devices.filter((id) => id !== own);
    setChildren(byId("revoke-list"), ...dependents.map((id) => h("li", {}, h("label", {},
      h("input", { type: "checkbox", checked: true, value: id }), " ", nameNode(deviceName(id)), " stays"))));
    show(byId("revoke-dependents"), dependents.length > 0);
    revoked = device;
    byId("revoke-do").disabled = !byId("revoke-sure").checked;
  } catch (error) {
    if (dialog.dataset.device === device.id) showProblem(dialog, error);
  }
}

async function doRevoke() {
  const keep = [...byId("revoke-list").querySelectorAll("input:checked")].map((box) => box.value);
  const { id, name } = revoked;
  await post("/api/devices/revoke", { device: id, keep });
  toast([{ name }, " was revoked. The other devices learn it as they are met."]);
}

export function startDevices() {
  onSubmit(byId("rename"), async () => {
    const name = byId("rename-name").value.trim();
    await post("/api/devices/rename", { device: byId("rename").dataset.device, name });
    toast(["The device is now called ", { name }, "."]);
  });
  onSubmit(byId("revoke"), doRevoke);
  byId("revoke-sure").addEventListener("change", (event) => {
    byId("revoke-do").disabled = !event.target.checked || !revoked;
  });
  byId("meet-open").addEventListener("click", () => openDialog(byId("meet")));
  onSubmit(byId("meet"), async () => {
    const address = byId("meet-address").value.trim();
    const met = await post("/api/devices/meet", { address });
    if (met.outcome !== "met") {
      throw new Error(`${met.reason ?? `${met.address} has not answered yet`}. The node goes on trying.`);
    }
    toast(met.device ? ["Met ", { name: deviceName(met.device) }, "."] : `Met a device at ${met.address}.`);
  });
}
