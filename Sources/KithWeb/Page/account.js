// While nobody is signed in: sign in again, create an account, or join one.

import { app, isSignedIn } from "./app.js";
import { get, post } from "./api.js";
import {
  byId, h, onSubmit, perform, plainName, setChildren, setText, show, showProblem,
} from "./dom.js";

let isOffered = false;

export function renderAccount() {
  const isSignedOut = app.status !== null && !isSignedIn();
  if (isSignedOut && !isOffered) offerAccounts();
  isOffered = isSignedOut;
  show(byId("welcome"), isSignedOut);
  for (const element of document.querySelectorAll("[data-signed-in]")) show(element, isSignedIn());
}

/** The accounts with a device on this host. */
async function offerAccounts() {
  let accounts = [];
  try {
    ({ accounts } = await get("/api/accounts"));
  } catch (error) {
    showProblem(byId("sign-in"), error);
  }
  show(byId("sign-in"), accounts.length > 0);
  setText(byId("sign-in-title"), accounts.length === 1 ? "Sign in again" : "Sign in to an account");
  setChildren(byId("sign-in-list"), ...accounts.map(({ account, directory }) => h("li", {},
    h("div", {}, h("code", {}, account.slice(0, 16)), h("small", {}, ` in ${plainName(directory)}`)),
    h("button", {
      type: "button", class: "primary", "aria-label": `Sign in to ${account.slice(0, 16)}`,
      onclick: () => perform(byId("sign-in"), () => post("/api/account/sign-in", { account })),
    }, "Sign in"))));
}

export function startAccount() {
  // The account exists once a person has its recovery key; see pairing.js.
  onSubmit(byId("create-form"),
    () => post("/api/account/create", { name: byId("create-name").value.trim() }));
}
