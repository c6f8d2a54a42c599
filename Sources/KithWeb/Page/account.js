// While nobody is signed in: create an account, or join one.

import { app, isSignedIn } from "./app.js";
import { post } from "./api.js";
import { byId, h, nameNode, onEscape, onSubmit, openDialog, show } from "./dom.js";

export function renderAccount() {
  show(byId("welcome"), app.status !== null && !isSignedIn());
  for (const element of document.querySelectorAll("[data-signed-in]")) show(element, isSignedIn());
}

async function create() {
  const { device, recoveryKey } = await post("/api/account/create", {
    name: byId("create-name").value.trim(),
  });
  byId("create-form").reset();
  byId("recovery-key").textContent = recoveryKey;
  byId("recovery-device").replaceChildren(nameNode(device.name), ", fingerprint ",
    h("code", { class: "fingerprint" }, device.fingerprint));
  byId("recovery-sure").checked = false;
  byId("recovery-done").disabled = true;
  openDialog(byId("recovery"));
}

export function startAccount() {
  onSubmit(byId("create-form"), create);
  const dialog = byId("recovery");
  byId("recovery-sure").addEventListener("change", (event) => {
    byId("recovery-done").disabled = !event.target.checked;
  });
  // Shown once: only the button closes it.
  onEscape(dialog, (event) => event.preventDefault());
  dialog.addEventListener("close", () => { byId("recovery-key").textContent = ""; });
  // The key is shown only this once.
  addEventListener("beforeunload", (event) => { if (dialog.open) event.preventDefault(); });
}
