// The map: this device in the centre, the others around it. Colour, shape and text say the state.

import { app, now } from "./app.js";
import { byId, count, plainName, setChildren, svg } from "./dom.js";
import { deviceState } from "./verdict.js";

// Paths in a square from -12 to 12: an outline, and a glyph in it.
const circle = "M0-11A11 11 0 1 1 0 11A11 11 0 1 1 0-11Z";
const icons = {
  self: [circle, "M-5.5-4.5h11v7.500h-11zM-2.500 6h5M0 3v3"],
  synced: [circle, "M-5 .5l3.500 3.500l6.500-7.500"],
  behind: ["M0-11L11 0L0 11L-11 0Z", "M0-5v9M-4 .500l4 4l4-4"],
  away: [circle, "M-4.500 0h9"],
  clock: ["M-5-10.500H5L10.500-5V5L5 10.500H-5L-10.500 5V-5Z", "M0-5v5.500l3.500 2.500"],
  revoked: ["M-9.500-9.500h19v19h-19z", "M-4-4l8 8M4-4l-8 8"],
};

/** The sign of a state, also used in the list of devices. */
export function stateIcon(kind, size = 24) {
  return svg("svg", {
    class: `icon kind-${kind}`, viewBox: "-12 -12 24 24", width: size, height: size, "aria-hidden": "true",
  }, ...shapes(kind));
}

const shapes = (kind) => [
  svg("path", { class: "outline", d: icons[kind][0] }),
  svg("path", { class: "glyph", d: icons[kind][1] }),
];

const parts = new Map();

export function renderMap() {
  const map = byId("map");
  const status = app.status;
  const devices = status?.devices.filter((device) => device.isMember || device.isThisDevice) ?? [];
  const own = devices.find((device) => device.isThisDevice);
  const width = map.clientWidth;
  if (!own || width === 0) return;
  const others = devices.filter((device) => device !== own);
  const isWide = width < byId("devices-card").clientWidth * 0.8;
  const height = Math.max(isWide ? Math.min(byId("devices").clientHeight, 460) : 0,
    (others.length < 2 ? 220 : width < 480 ? 320 : 330) + Math.max(0, others.length - 6) * 16);
  map.setAttribute("viewBox", `0 0 ${width} ${height}`);
  map.setAttribute("height", height);

  // Two devices stand side by side.
  const centre = [others.length === 1 ? width * 0.32 : width / 2, height / 2];
  const seen = new Set();
  const place = (device, position, size) => {
    seen.add(device.id);
    const state = deviceState(device, status, now());
    draw(device, state, position, centre, size);
    return `${plainName(device.name)}: ${state.text}`;
  };
  const texts = others.map((device, index) =>
    place(device, spot(index, others.length, centre, width, height), others.length > 9 ? 34 : 44));
  place(own, centre, 60);
  for (const [id, part] of parts) {
    if (seen.has(id)) continue;
    part.group.remove();
    part.line.remove();
    parts.delete(id);
  }
  map.setAttribute("aria-label",
    `Map of ${count(devices.length, "device")}. ${plainName(own.name)}: this device. ${texts.join(". ")}`);
}

function spot(index, total, [x, y], width, height) {
  // Of few devices, none is just above or below the centre, where labels are.
  const start = total % 2 === 0 && total > 2 ? 180 / total : 0;
  const angle = ((start + (360 * index) / total) * Math.PI) / 180;
  const ring = total > 9 && index % 2 === 1 ? 0.66 : 1;
  const across = Math.min(width / 2 - 66, 330) * ring;
  return [x + Math.cos(angle) * across, y + Math.sin(angle) * (height / 2 - 66) * ring];
}

function draw(device, state, [x, y], [centreX, centreY], size) {
  let part = parts.get(device.id);
  if (!part) {
    part = create();
    parts.set(device.id, part);
  }
  if (part.kind !== state.kind) {
    part.kind = state.kind;
    part.group.setAttribute("class", `device kind-${state.kind}`);
    part.line.setAttribute("class", `session kind-${state.kind}`);
    setChildren(part.icon, ...shapes(state.kind));
  }
  part.icon.setAttribute("transform", `scale(${size / 24})`);
  part.group.style.transform = `translate(${x}px, ${y}px)`;
  for (const [name, value] of [["x1", centreX], ["y1", centreY], ["x2", x], ["y2", y]]) {
    part.line.setAttribute(name, value);
  }
  // Labels are on the outer side, away from the lines.
  const isAbove = y < centreY - 20;
  part.name.setAttribute("y", isAbove ? -size / 2 - 23 : size / 2 + 17);
  part.state.setAttribute("y", isAbove ? -size / 2 - 8 : size / 2 + 33);
  const name = plainName(device.name);
  part.name.textContent = name.length > 18 ? `${name.slice(0, 17)}…` : name;
  part.state.textContent = state.text.length > 24 ? state.text.replace(/,.*/, "") : state.text;
  part.title.textContent = `${name}: ${state.text}`;
}

function create() {
  const part = {
    line: svg("line"), group: svg("g"), icon: svg("g"), title: svg("title"),
    name: svg("text", { class: "label" }), state: svg("text", { class: "label state" }),
  };
  part.group.append(part.title, part.icon, part.name, part.state);
  byId("map-lines").append(part.line);
  byId("map-devices").append(part.group);
  return part;
}

export function startMap() {
  new ResizeObserver(renderMap).observe(byId("map"));
}
