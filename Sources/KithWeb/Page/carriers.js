// The list of carriers: storage through which devices exchange without meeting.

import { app, now } from "./app.js";
import { ago, byId, bytes, count, h, moment, nameNode, plainName, redraw, show } from "./dom.js";

export function renderCarriers() {
  const carriers = app.status.carriers ?? [];
  show(byId("carriers-card"), carriers.length > 0);
  const lines = carriers.map((carrier) => [carrier, facts(carrier)]);
  redraw(byId("carriers"), lines, () => lines.map(([carrier, parts]) => h("li", { class: "carrier" },
    h("strong", {}, `${plainName(carrier.kind)} `, nameNode(carrier.location)),
    h("p", { class: carrier.problem ? "problem" : "faint" }, parts.join(" ")))));
}

function facts(carrier) {
  const parts = [];
  if (carrier.problem) parts.push(plainName(carrier.problem));
  else if (carrier.heldSinceMilliseconds) {
    parts.push(`Has held everything of this device since ${moment(carrier.heldSinceMilliseconds)}.`);
  } else parts.push("Does not hold everything yet.");
  if (carrier.listedMilliseconds) parts.push(`Looked at ${ago(carrier.listedMilliseconds, now())}.`);
  if (carrier.objects > 0) parts.push(`${count(carrier.objects, "object")}, ${bytes(carrier.bytes)}.`);
  parts.push(carrier.isShared ? "For all devices of the account." : "For this device.");
  return parts;
}
