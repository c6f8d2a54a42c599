// What a foreign page can try with the page of kith web, which runs in the same browser. Each attack
// returns the text that it read, or something else that it learned; false or an error: nothing.

const write = '{"store":"default","create":true,"writes":[{"key":"attack","json":"1"}]}';

function loaded(element, read = () => "loaded") {
  return new Promise((resolve) => {
    element.onload = () => {
      try { resolve(read(element)); } catch { resolve(false); }
    };
    element.onerror = () => resolve(false);
    document.body.append(element);
  });
}

const make = (tag, members) => Object.assign(document.createElement(tag), members);

function form(action, enctype, name, value) {
  const frame = make("iframe", { name: `frame${Math.random()}` });
  document.body.append(frame);
  const field = make("input", { name, value });
  const sent = make("form", { method: "POST", action, enctype, target: frame.name });
  sent.append(field);
  document.body.append(sent);
  const done = new Promise((resolve) => {
    frame.onload = () => {
      try { resolve(frame.contentDocument?.body?.innerText || false); } catch { resolve(false); }
    };
  });
  sent.submit();
  return done;
}

const text = async (response) => (await response).text();

// A reading that the server must not answer.
const readings = {
  "fetch": (at) => text(fetch(`${at}/api/status`)),
  "fetch with cookies": (at) => text(fetch(`${at}/api/status`, { credentials: "include" })),
  "fetch without cors": (at) =>
    text(fetch(`${at}/api/status`, { mode: "no-cors", credentials: "include" })),
  "fetch with a key": (at) => text(fetch(`${at}/api/status`, {
    credentials: "include", headers: { "X-Kith-Key": "0".repeat(64) },
  })),
  "XMLHttpRequest": (at) => new Promise((resolve) => {
    const request = new XMLHttpRequest();
    request.open("GET", `${at}/api/export?store=default`);
    request.withCredentials = true;
    request.onload = () => resolve(request.responseText);
    request.onerror = () => resolve(false);
    request.send();
  }),
  "events": (at) => new Promise((resolve) => {
    const events = new EventSource(`${at}/api/events?store=default`, { withCredentials: true });
    events.onmessage = events.onopen = () => resolve("events");
    events.onerror = () => { events.close(); resolve(false); };
  }),
  "web socket": (at) => new Promise((resolve) => {
    const socket = new WebSocket(`${at.replace("http", "ws")}/api/events?store=default`);
    socket.onopen = () => resolve("open");
    socket.onerror = () => resolve(false);
  }),
  "script of an answer": (at) =>
    loaded(make("script", { src: `${at}/api/status` })),
  "local storage": () => localStorage.getItem("kith-key"),
  "cookie": () => document.cookie,
};

// Files of the page, which hold no secret: a foreign page still gets no use of them.
const files = {
  "script": (at) => loaded(make("script", { src: `${at}/api.js`, type: "module" })),
  "import": async (at) => Object.keys(await import(`${at}/api.js`)).join(),
  "style": (at) => loaded(make("link", { rel: "stylesheet", href: `${at}/page.css` })),
  "image": (at) => loaded(make("img", { src: `${at}/icon.svg` })),
  "frame": (at) => loaded(make("iframe", { src: `${at}/` }), (frame) =>
    frame.contentDocument.body.innerText || frame.contentDocument.title),
  "window": async (at) => {
    const other = open(`${at}/`);
    if (!other) return false;
    for (let round = 0; round < 50 && !other.closed; round += 1) {
      try {
        if (other.location.href !== "about:blank" && other.document.readyState === "complete") {
          return other.document.body.innerText;
        }
      } catch { break; }
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    return false;
  },
};

// A change that the server must not do, whatever the answer.
const changes = {
  "plain text": (at) => text(fetch(`${at}/api/write`, {
    method: "POST", mode: "no-cors", credentials: "include", body: write,
    headers: { "Content-Type": "text/plain" },
  })),
  "json": (at) => text(fetch(`${at}/api/write`, {
    method: "POST", credentials: "include", body: write,
    headers: { "Content-Type": "application/json" },
  })),
  "beacon": (at) => {
    navigator.sendBeacon(`${at}/api/write`, new Blob([write], { type: "text/plain" }));
  },
  "form of plain text": (at) =>
    form(`${at}/api/write`, "text/plain", `${write.slice(0, -1)},"x":"`, '"}'),
  "form": (at) => form(`${at}/api/write`, "application/x-www-form-urlencoded", write, ""),
  "form with files": (at) => form(`${at}/api/import?store=default&dryRun=false`,
    "multipart/form-data", "file", write),
  "guessed token": (at) => text(fetch(`${at}/api/token`, {
    method: "POST", mode: "no-cors", credentials: "include", body: '{"token":"0"}',
    headers: { "Content-Type": "text/plain" },
  })),
};

async function attack(at, attacks) {
  const learned = {};
  await Promise.all(Object.entries(attacks).map(async ([name, run]) => {
    const never = new Promise((resolve) => setTimeout(resolve, 2000, false));
    try { learned[name] = await Promise.race([run(at), never]) || false; } catch { learned[name] = false; }
  }));
  return learned;
}
