// Pairing: an invitation with its code and QR code, or joining; both fingerprints, and a person's yes.
// Also a new account, with its recovery key.

import { app, isSignedIn, now, on } from "./app.js";
import { post } from "./api.js";
import {
  byId, duration, h, nameNode, onEscape, onSubmit, openDialog, perform, setChildren, setText,
  showProblem, svg,
} from "./dom.js";

let state = null;
let drawn = "";
let role = "inviter";

async function invite() {
  // One that goes on, perhaps of another tab.
  if (state && !["done", "failed"].includes(state.state)) return openDialog(byId("pairing"));
  role = "inviter";
  state = null;
  drawn = "";
  const dialog = byId("pairing");
  setText(byId("pairing-title"), "Invite a device");
  setChildren(byId("pairing-body"), h("p", {}, "Making a code …"));
  setChildren(byId("pairing-buttons"), button("Close", () => dialog.close()));
  openDialog(dialog);
  try { await post("/api/invite"); } catch (error) { showProblem(dialog, error); }
}

/** Called with each event: null, or the state of a pairing. */
export function showPairing(next) {
  const dialog = byId("pairing");
  const before = state;
  state = next;
  if (!next) {
    if (before) {
      dialog.close();
      // No recovery key stays in the page.
      setChildren(byId("pairing-body"));
    }
    drawn = "";
    return;
  }
  role = next.role;
  // Not before: a mistyped code is corrected.
  if (role === "joiner" && next.state === "done") byId("join-form").reset();
  if (!dialog.open) openDialog(dialog);
  const view = views[`${next.role} ${next.state}`] ?? views[next.state];
  // The steps that last are changed in place: a click or an opened part is not lost.
  const { triesLeft, done, ...lasting } = next;
  const shape = JSON.stringify(lasting);
  if (!view) return;
  if (shape === drawn) return refresh();
  const isNewStep = before?.state !== next.state || before?.role !== next.role;
  drawn = shape;
  const { title, body, buttons } = view(next);
  setText(byId("pairing-title"), title);
  setChildren(byId("pairing-body"), ...body.filter(Boolean));
  setChildren(byId("pairing-buttons"), ...buttons);
  if (isNewStep) {
    dialog.querySelector(".problem").hidden = true;
    byId("pairing-title").focus();
  }
  refresh();
}

function refresh() {
  const { triesLeft, done, total } = state;
  if (byId("pairing-tries")) {
    setText(byId("pairing-tries"), `${triesLeft} ${triesLeft === 1 ? "try" : "tries"} left.`);
  }
  if (byId("pairing-progress")) {
    byId("pairing-progress").value = done;
    setText(byId("pairing-percent"), `${Math.floor((100 * done) / total)} %`);
  }
  tick();
}

const button = (label, run, kind = "") =>
  h("button", { type: "button", class: kind, onclick: run }, label);

const request = (path, body) => () => perform(byId("pairing"), () => post(path, body));

const cancel = request("/api/pairing/cancel");

const answer = (device, accept) => request("/api/pairing/answer", { accept, device: device.id });

const views = {
  "inviter opening": () => ({
    title: "Invite a device",
    body: [h("p", {}, "Making a code …"), waiting()],
    buttons: [button("Cancel", cancel)],
  }),
  "inviter waiting": ({ code, token, qr, addresses }) => ({
    title: "Invite a device",
    body: [
      h("p", {}, "On the new device run ", h("code", {}, "kith join"), " or ", h("code", {}, "kith web"),
        ", and type this code:"),
      code && h("p", { class: "pairing-code", id: "pairing-code", "aria-label": `Pairing code ${code}` }, code),
      qr && h("figure", { class: "qr" }, qrCode(qr), h("figcaption", {}, "The QR code holds the token below.")),
      h("p", { class: "faint" }, h("span", { id: "pairing-ends" }),
        " ", code && h("span", { id: "pairing-tries" })),
      h("details", {}, h("summary", {}, "Token and addresses"),
        h("p", {}, "The token is a long code. A device that has it can ask to join."),
        h("textarea", { id: "pairing-token", class: "code", readonly: true, rows: 3, "aria-label": "Token" },
          token),
        button("Copy the token", (event) => copy(event, token), "quiet"),
        h("p", {}, "This device can be reached at:"),
        h("ul", {}, ...addresses.map((address) => h("li", {}, h("code", {}, nameNode(address)))))),
    ],
    buttons: [button("Cancel the invitation", cancel)],
  }),
  "inviter asking": ({ candidate, ownFingerprint, notice }) => ({
    title: "Is this your device?",
    body: [
      h("p", {}, nameNode(candidate.name), " at ", nameNode(candidate.address), " asks to join. ",
        "Compare both fingerprints with its screen. Admit it only if both are the same there."),
      fingerprints(ownFingerprint, candidate),
      notice && h("p", { class: "notice" }, notice),
    ],
    buttons: [
      button("Do not admit it", answer(candidate, false)),
      button("Both are the same: admit it", answer(candidate, true), "primary"),
    ],
  }),
  "joiner searching": () => ({
    title: "Searching for the other device",
    body: [h("p", {}, "The other device must still show its code. This takes up to 30 s."), waiting()],
    buttons: [button("Cancel", cancel)],
  }),
  "joiner asking": ({ inviter, ownFingerprint }) => ({
    title: "Is this your other device?",
    body: [
      h("p", {}, nameNode(inviter.name), " at ", nameNode(inviter.address), " invites this device. ",
        "Compare both fingerprints with its screen. Join only if both are the same there."),
      fingerprints(ownFingerprint, inviter),
    ],
    buttons: [
      button("Do not join", answer(inviter, false)),
      button("Both are the same: join", answer(inviter, true), "primary"),
    ],
  }),
  "joiner pulling": ({ total }) => ({
    title: "Copying the account's values",
    body: [
      total > 0 ? h("progress", { id: "pairing-progress", max: total, value: 0, "aria-label": "Progress" }) : waiting(),
      total > 0 && h("p", { class: "faint", id: "pairing-percent" }),
    ],
    buttons: [button("Cancel", cancel)],
  }),
  admitting: () => ({
    title: "Finishing",
    body: [h("p", {}, role === "inviter" ? "The new device copies the account's values."
      : "The other device confirms."), waiting()],
    buttons: [button("Cancel", cancel)],
  }),
  creating: () => ({
    title: "Creating the account",
    body: [waiting()],
    buttons: [],
  }),
  showing: ({ device, recoveryKey }) => ({
    title: "Write the recovery key down",
    body: [
      h("p", {}, "It is kept nowhere, and not shown again. Keep it on paper, off this device."),
      h("p", { id: "recovery-key", class: "recovery-key code" }, recoveryKey),
      h("p", {}, "With it, and the directory of one device, you recover the account if all devices are lost."),
      h("p", { class: "faint" }, "This device is ", nameNode(device.name), ", fingerprint ",
        h("code", { class: "fingerprint" }, device.fingerprint), "."),
      h("label", { class: "check" },
        h("input", {
          type: "checkbox", id: "recovery-sure",
          onchange: (event) => { byId("recovery-done").disabled = !event.target.checked; },
        }), " I have written the recovery key down"),
    ],
    buttons: [
      button("Cancel", cancel),
      h("button", {
        type: "button", id: "recovery-done", class: "primary", disabled: true,
        onclick: answer(device, true),
      }, "Create the account"),
    ],
  }),
  done: ({ device, partial, notice }) => ({
    title: "Done",
    body: [
      role === "inviter" && device
        ? h("p", {}, nameNode(device.name), " is now a device of the account.")
        : h("p", {}, "This device now belongs to the account",
          partial || notice ? "." : ", and has all that the other device has."),
      partial && h("p", { class: "notice" }, partial),
      device && h("p", {}, "Its fingerprint is ", h("code", { class: "fingerprint" }, device.fingerprint), "."),
      notice && h("p", { class: "notice" }, notice),
    ],
    buttons: [button("Close", cancel, "primary")],
  }),
  failed: ({ error }) => ({
    title: {
      inviter: "The device did not join", joiner: "This device did not join",
      creator: "The account was not created",
    }[role],
    body: [h("p", { role: "alert" }, error.message)],
    buttons: [
      button("Close", cancel),
      role === "inviter" && isSignedIn() && button("Make a new code", async () => {
        if (await cancel()) invite();
      }, "primary"),
    ].filter(Boolean),
  }),
};

function fingerprints(own, other) {
  const item = (label, text) => h("div", {}, h("dt", {}, label),
    h("dd", {}, h("code", { class: "fingerprint" }, text)));
  return h("dl", { class: "fingerprints" }, item("This device", own),
    item(nameNode(other.name), other.fingerprint));
}

const waiting = () => h("progress", { "aria-label": "Please wait" });

function qrCode({ width, rows }) {
  const path = rows.flatMap((row, y) =>
    [...row.matchAll(/1+/g)].map((run) => `M${run.index} ${y}h${run[0].length}v1h-${run[0].length}z`)).join("");
  const size = width + 8;
  return svg("svg", {
    viewBox: `-4 -4 ${size} ${size}`, role: "img", "aria-label": "QR code of the token",
    "shape-rendering": "crispEdges",
  }, svg("rect", { x: -4, y: -4, width: size, height: size, fill: "#ffffff" }),
  svg("path", { d: path, fill: "#000000" }));
}

async function copy(event, text) {
  const { currentTarget } = event;
  try {
    await navigator.clipboard.writeText(text);
    setText(currentTarget, "The token was copied");
  } catch {
    byId("pairing-token").select();
  }
}

function tick() {
  const place = byId("pairing-ends");
  if (!place || !state?.endsMilliseconds) return;
  const rest = state.endsMilliseconds - now();
  setText(place, rest > 0 ? `The code is valid for ${duration(rest)}.` : "The code is no longer valid.");
}

async function join() {
  role = "joiner";
  const address = byId("join-address").value.trim();
  await post("/api/join", {
    code: byId("join-code").value.trim(), name: byId("join-name").value.trim(),
    address: address || undefined,
  });
}

export function startPairing() {
  setInterval(tick, 1000);
  for (const one of document.querySelectorAll("[data-invite]")) one.addEventListener("click", invite);
  onSubmit(byId("join-form"), join);
  // Escape neither answers a question nor hides a pairing that goes on.
  onEscape(byId("pairing"), (event) => {
    if (!state) return;
    event.preventDefault();
    if (["waiting", "searching", "admitting", "done", "failed"].includes(state.state)) cancel();
  });
  on("offline", () => { if (app.connection === "ended") byId("pairing").close(); });
}
