// The meaning of the status for people: is everything in sync? Pure functions of the status document.
// Sentences are parts: texts, and { name } for names from other devices.

import { ago, count, duration, nameList } from "./dom.js";

// A device sends something at least every 30 s.
const longestPause = 40000;

const sum = (values) => values.reduce((total, value) => total + value, 0);
export const lack = (device) => sum(Object.values(device.behind ?? {}));

/** { kind, text }: kind is self, synced, behind, away, clock or revoked. */
export function deviceState(device, status, now) {
  const name = (id) => status.devices.find((one) => one.id === id)?.name ?? id.slice(0, 16);
  if (device.revocation) {
    const revokers = device.revocation.revokers.map(name).join(", ");
    return { kind: "revoked", text: `revoked ${ago(device.revocation.milliseconds, now)} by ${revokers}` };
  }
  if (!device.isMember) return { kind: "revoked", text: "not a member: no signature admits it" };
  if (device.isThisDevice) return { kind: "self", text: "this device" };
  const difference = status.clock.differences.find((one) => one.device === device.id);
  if (difference) {
    return { kind: "clock", text: `clock differs by ${duration(difference.milliseconds)}` };
  }
  const session = status.peers.findLast((peer) => peer.device === device.id);
  const silence = now - (device.lastSeenMilliseconds ?? now);
  if (session?.isExchanging && silence > longestPause) {
    return { kind: "away", text: `silent for ${duration(silence)}` };
  }
  if (session?.isExchanging) {
    const lacking = lack(device);
    return lacking === 0 ? { kind: "synced", text: status.storesInPart.length === 0 ? "in sync" : "connected" }
      : { kind: "behind", text: `lacks ${count(lacking, "change set")}` };
  }
  if (device.isConnected) return { kind: "behind", text: "connected, but exchanges no stores" };
  return { kind: "away", text: device.wasSeen ? "not connected" : "never seen" };
}

/** { kind, title, detail: parts }: the answer in one sentence, and one more. */
export function verdict(app, now) {
  if (app.connection === "ended") return {
    kind: "offline", title: "This page has ended.", detail: [app.message],
  };
  const status = app.status;
  const title = {
    away: "The node does not answer.", crowded: "Too many windows show this page.",
    lost: "kith web does not answer.",
  }[app.connection];
  if (title) return {
    kind: "offline", title,
    detail: [`${app.message}${status ? " The page shows the state from before." : ""}`],
  };
  if (!status) return { kind: "offline", title: "Connecting …", detail: [""] };
  if (status.account === undefined) return {
    kind: "signedOut", title: "Nobody is signed in.",
    detail: ["Sign in, create an account, or join one of another device. Until then, values stay on this device."],
  };
  if (status.isRevoked) return {
    kind: "problem", title: "This device was revoked.",
    detail: ["It gets no later writes, and other devices ignore its own. What it has read stays here."],
  };
  return problem(status) ?? syncState(status, now);
}

function problem(status) {
  const details = [];
  if (status.hasNoIncarnations) {
    details.push("This device was copied or restored too often. It publishes nothing.");
  }
  const damaged = status.stores.filter((store) => store.missing);
  if (damaged.length > 0) {
    details.push("The disk damaged a part of ", ...nameList(damaged.map((one) => one.identifier)),
      ". Other devices are asked for it.");
  }
  if (status.problems.length > 0) {
    details.push(`See ${count(status.problems.length, "problem")} below.`);
  }
  return details.length === 0 ? null
    : { kind: "problem", title: "Something needs your attention.", detail: details };
}

function syncState(status, now) {
  const others = status.devices.filter((device) => device.isMember && !device.isThisDevice);
  if (others.length === 0) return {
    kind: "alone", title: "This is the account's only device.",
    detail: ["Invite another device, and it will hold the same values."],
  };
  const kinds = new Map(others.map((device) => [device, deviceState(device, status, now).kind]));
  const of = (kind) => others.filter((device) => kinds.get(device) === kind);
  const [inSync, behind, away, clocks] = ["synced", "behind", "away", "clock"].map(of);
  const drafts = sum(status.stores.map((store) => store.drafts));
  if (clocks.length > 0) return {
    kind: "problem", title: "A clock needs your attention.",
    detail: ["Set the clock of ", ...nameList(clocks.map((one) => one.name)),
      " or of this device: they differ too much to exchange stores."],
  };
  if (behind.length > 0) {
    const lacking = sum(behind.map(lack));
    const detail = lacking > 0
      ? [...nameList(behind.map((one) => one.name)), behind.length === 1 ? " still lacks " : " still lack ",
        `${count(lacking, "change set")}.`]
      : [...nameList(behind.map((one) => one.name)), " is connected, but exchanges no stores yet."];
    return { kind: "syncing", title: "Changes are on their way.", detail };
  }
  const isWhole = status.storesInPart.length === 0;
  const inPart = isWhole ? []
    : [" In part here: ", ...nameList(status.storesInPart), ". The rest of each comes once a program here opens it."];
  const held = (status.carriers ?? []).find((carrier) => carrier.heldSinceMilliseconds);
  if (inSync.length === 0 && held) return {
    kind: "partly", title: isWhole ? "Everything is on a carrier." : "What is here is on a carrier.",
    detail: ["Other devices get it from ", { name: held.location }, " when they look.", ...inPart],
  };
  if (inSync.length === 0) return {
    kind: "waiting", title: "No other device is connected.",
    detail: drafts > 0
      ? [`${count(drafts, "write")} of this device ${drafts === 1 ? "waits" : "wait"} until one is.`]
      : ["Changes are exchanged when two devices are on together."],
  };
  if (drafts > 0) return {
    kind: "syncing", title: "Changes are on their way.",
    detail: [`${count(drafts, "write")} of this device ${drafts === 1 ? "is" : "are"} about to be published.`],
  };
  if (away.length > 0) {
    const lacking = away.filter((device) => lack(device) > 0);
    const ofOthers = `${inSync.length} of ${count(others.length, "other device")}`;
    return {
      kind: "partly",
      title: isWhole ? `In sync with ${ofOthers}.`
        : `${ofOthers} ${inSync.length === 1 ? "has" : "have"} what is here.`,
      detail: [...nameList(away.map((one) => one.name)), away.length === 1 ? " is" : " are", " not connected",
        lacking.length === 0 ? "." : `, and ${away.length === 1 ? "lacks" : "lack"} `
          + `${count(sum(lacking.map(lack)), "change set")}.`, ...inPart],
    };
  }
  const all = others.length === 1 ? [{ name: others[0].name }, " has everything that this device has."]
    : [`${others.length === 2 ? "Both" : `All ${others.length}`} other devices have everything that this device has.`];
  return isWhole ? { kind: "synced", title: "Everything is in sync.", detail: all }
    : { kind: "partly", title: "All devices have what is here.", detail: [...all, ...inPart] };
}
