// Requests to kith web, and the stream of its events.

const keyName = "kith-key";
// A write waits for the disk. A request that the browser has not sent by then is never sent.
const longestAnswer = 30000;
let pageKey = null;
let token = "";

export class ApiError extends Error {
  constructor(code, message, status) {
    super(message);
    this.code = code;
    this.status = status;
  }
}

const endedMessage =
  "The address was used already, or kith web has ended. Run kith web again, and open its new address.";

/** Trades the token of the address for a key, or takes the key that this browser kept. */
export async function openPage() {
  token = location.hash.slice(1) || token;
  if (location.hash) history.replaceState(null, "", location.pathname + location.search);
  pageKey = keptKey();
  if (token) {
    try {
      const answer = await call("/api/token", { method: "POST", body: { token } });
      pageKey = answer.key;
      try { localStorage.setItem(keyName, pageKey); } catch { /* This tab alone has it. */ }
      return;
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 401) throw error;
      // The address may have been opened in this browser before: then the kept key counts.
    }
  }
  if (!pageKey) throw new ApiError("credentials", endedMessage, 401);
}

function keptKey() {
  try { return localStorage.getItem(keyName); } catch { return null; }
}

async function call(
  path, { method = "GET", body, raw, signal = AbortSignal.timeout(longestAnswer) } = {},
) {
  const headers = {};
  if (pageKey) headers["X-Kith-Key"] = pageKey;
  if (raw) headers["Content-Type"] = "application/octet-stream";
  else if (body !== undefined) headers["Content-Type"] = "application/json";
  try {
    const response = await fetch(path, {
      method, headers, signal, cache: "no-store", credentials: "same-origin",
      body: raw ?? (body === undefined ? undefined : JSON.stringify(body)),
    });
    if (!response.ok) throw await failure(response);
    return path.startsWith("/api/events") || path.startsWith("/api/export")
      ? response : await response.json();
  } catch (error) {
    if (error instanceof ApiError || error.name === "AbortError") throw error;
    const outcome = method === "GET" ? "" : " It is unknown whether this was done.";
    throw new ApiError("network", `kith web does not answer.${outcome}`, 0);
  }
}

async function failure(response) {
  if (response.status === 401) return new ApiError("credentials", endedMessage, 401);
  const document = await response.json().catch(() => null);
  const { code = "failure", message = `kith web answered with status ${response.status}.` } =
    document?.error ?? {};
  return new ApiError(code, message, response.status);
}

// Not by URLSearchParams, which writes a space as +.
const query = (parameters) => Object.entries(parameters)
  .filter(([, value]) => value !== undefined)
  .map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join("&");

export const get = (path, parameters = {}) => call(`${path}?${query(parameters)}`);
export const post = (path, body = {}) => call(path, { method: "POST", body });
export const send = (path, parameters, raw) =>
  call(`${path}?${query(parameters)}`, { method: "POST", raw });

const hidden = "hidden";

/**
 * Follows the events of a store until `stop()`, while the page is visible: browsers open six
 * connections to a host, and each stream keeps one. If the stream ends, it is opened again after
 * 1, 2, 4 … 10 s; `handlers.lost(seconds, error)` is called before each wait.
 */
export function follow(store, handlers) {
  let controller = null;
  let isStopped = false;
  let wake = () => {};
  let pause = 1;

  async function run() {
    while (!isStopped) {
      if (document.hidden) { await woken(); continue; }
      let problem;
      try {
        await read();
      } catch (error) {
        problem = error;
      }
      if (isStopped || controller.signal.reason === hidden) continue;
      if (problem?.status === 401) return handlers.ended(problem.message);
      handlers.lost(pause, problem);
      await woken(pause);
      pause = Math.min(pause * 2, 10);
    }
  }

  const woken = (seconds) => new Promise((resolve) => {
    wake = resolve;
    if (seconds) setTimeout(resolve, seconds * 1000);
  });

  function onVisibility() {
    if (document.hidden) controller?.abort(hidden);
    else wake();
  }

  async function read() {
    controller = new AbortController();
    // Something comes every 15 s, also if the node does not answer; after a longer silence the
    // connection is dead.
    let watchdog = setTimeout(() => controller.abort(), 30000);
    try {
      const response = await call(`/api/events?${query({ store })}`, { signal: controller.signal });
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      let text = "";
      for (;;) {
        const { done, value } = await reader.read();
        if (done || isStopped) return;
        pause = 1;
        clearTimeout(watchdog);
        watchdog = setTimeout(() => controller.abort(), 30000);
        // Only at an event's end, so that a large event is not looked through again and again.
        const mayEnd = value.includes("\n\n") || text.endsWith("\n");
        text += value;
        if (!mayEnd) continue;
        const events = text.split("\n\n");
        text = events.pop();
        for (const event of events) dispatch(event);
      }
    } finally {
      clearTimeout(watchdog);
    }
  }

  function dispatch(event) {
    let name = "message";
    const data = [];
    for (const line of event.split("\n")) {
      if (line.startsWith("event:")) name = line.slice(6).trim();
      else if (line.startsWith("data:")) data.push(line.slice(5).replace(/^ /, ""));
    }
    if (data.length === 0 || !handlers[name] || isStopped) return;
    // A part of the page that fails must not end the stream.
    try { handlers[name](JSON.parse(data.join("\n"))); } catch (error) { console.error(error); }
  }

  document.addEventListener("visibilitychange", onVisibility);
  run();
  return {
    retry() { wake(); },
    stop() {
      isStopped = true;
      document.removeEventListener("visibilitychange", onVisibility);
      controller?.abort();
      wake();
    },
  };
}
