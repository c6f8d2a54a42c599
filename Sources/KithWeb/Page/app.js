// The state that all parts of the page share: the newest status, the chosen store, and its entries.

export const app = {
  status: null,
  store: null,
  /** Shown values by key: { key, type, bytes, json? }. */
  entries: new Map(),
  /** Edits that wait in the transaction, by key: { key, json? (left out: removes), was }. */
  pending: new Map(),
  /** "live", "away" (the node does not answer), "lost" (kith web does not), "crowded" (other windows
   * have all streams), "ended". */
  connection: "connecting",
  message: "",
  /** The host's clock less the browser's. */
  skew: 0,
};

const bus = new EventTarget();
export const on = (name, run) => bus.addEventListener(name, (event) => run(event.detail));
export const emit = (name, detail) => bus.dispatchEvent(new CustomEvent(name, { detail }));

export const now = () => Date.now() + app.skew;

export const isSignedIn = () => app.status?.account !== undefined;

export function deviceName(id) {
  const device = app.status?.devices.find((one) => one.id === id);
  return device?.name ?? String(id).slice(0, 16);
}

export const storeStatus = (name = app.store) =>
  app.status?.stores.find((store) => store.identifier === name);
