// Shows the content that the program sends, and sends the program what a person asks for. Values
// are shown by textContent only, so that none is read as HTML.

const element = (id) => document.getElementById(id);
const rows = new Map(); // by URL: a row that stays keeps the focus
let content;

const events = new EventSource("events"); // connects again by itself
events.onopen = () => tell("connection", "");
events.onerror = () => tell("connection", "Not connected to the program: the list may be old.");
events.onmessage = (event) => {
  content = JSON.parse(event.data);
  show();
};
setInterval(showChange, 10_000);

function show() {
  document.title = `Bookmarks on ${content.device}`;
  element("device").textContent = content.device;
  if (content.lost.length) tell("notice", `No longer in the list: ${content.lost.join(", ")}`);
  element("empty").hidden = content.bookmarks.length > 0;
  showChange();

  const list = element("bookmarks");
  const focused = document.activeElement;
  const position = [...list.children].indexOf(focused.closest("li"));
  const urls = new Set(content.bookmarks.map((bookmark) => bookmark.url));
  for (const url of rows.keys()) if (!urls.has(url)) rows.delete(url);
  list.replaceChildren(...content.bookmarks.map(row));
  if (position >= 0) keepFocus(focused, list.children[position] ?? list.lastElementChild);
}

// A moved row has lost the focus, and gets it back. A removed row gives it to the next one. In the
// first row, the button that moves it up is disabled.
function keepFocus(focused, successor) {
  if (!focused.isConnected) focused = successor?.querySelector(".remove") ?? element("url");
  if (focused.disabled) focused = focused.parentElement.querySelector("button:enabled");
  focused.focus();
}

function showChange() {
  const change = content?.lastChange;
  element("changed").textContent =
    change ? `Changed on ${change.device} ${ago(new Date(change.date))}` : "";
}

function ago(date) {
  const seconds = (Date.now() - date) / 1000;
  if (seconds < 60) return "a moment ago";
  const [unit, length] =
    seconds < 3600 ? ["minute", 60] : seconds < 86400 ? ["hour", 3600] : ["day", 86400];
  return new Intl.RelativeTimeFormat("en").format(-Math.floor(seconds / length), unit);
}

function row({ url, title }, index) {
  const row = rows.get(url) ?? element("bookmark").content.firstElementChild.cloneNode(true);
  rows.set(url, row);
  const link = row.querySelector("a");
  // Another program may have written anything, such as javascript: or file:.
  if (/^https?:/i.test(url)) link.href = url;
  link.textContent = title;
  row.querySelector("small").textContent = url;

  const button = (name, label, isEnabled, action) => {
    const button = row.querySelector(`.${name}`);
    button.ariaLabel = label;
    button.disabled = !isEnabled;
    button.onclick = action;
  };
  const urlAt = (index) => content.bookmarks[index]?.url;
  button("up", `Move ${title} up`, index > 0, () =>
    send("move", { url, before: urlAt(index - 1) }));
  button("down", `Move ${title} down`, index < content.bookmarks.length - 1, () =>
    send("move", { url, before: urlAt(index + 2) }));
  button("remove", `Remove ${title}`, true, () => send("remove", { url }));
  return row;
}

element("add").onsubmit = async (event) => {
  event.preventDefault();
  const [url, title] = [element("url"), element("title")];
  const sent = { url: url.value, title: title.value };
  if (!(await send("add", sent))) return;
  // The list may show it before the answer comes: what was typed since stays.
  if (title.value === sent.title) title.value = "";
  if (url.value !== sent.url) return;
  url.value = "";
  url.focus();
};

// Returns whether the program did it. The list changes with the next event.
async function send(path, request) {
  tell("notice", "");
  try {
    const response = await fetch(path, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(request),
    });
    const answer = response.ok ? null : await response.json();
    tell("error", answer ? answer.error.message : "");
    return response.ok;
  } catch {
    tell("error", "The program does not answer.");
    return false;
  }
}

function tell(id, text) {
  element(id).textContent = text;
  element(id).hidden = !text;
}
