// The exact JSON of values (`ValueJSON`) as a tree. JSON.parse would lose 1.0, 64-bit integers, and
// the order of members, so this reads the text itself.
//
// A node is { type, text } (bool, integer, double, string, date, data), or
// { type: "array", items: [node] }, or { type: "dictionary", members: [[key, node]] }.

const string = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/.source;
const number = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/.source;
const tokens = new RegExp(`\\s*(?:(${string})|(${number})|(true|false)|([[\\]{},:]))`, "y");

export class JsonError extends Error {}

const least = -(2n ** 63n);
const most = 2n ** 63n - 1n;
export const isInteger64 = (text) => {
  if (!/^-?\d+$/.test(text)) return false;
  const value = BigInt(text);
  return value >= least && value <= most;
};

export function parse(text) {
  let position = 0;
  let token = null;

  function fail(reason) {
    const line = text.slice(0, position).split("\n").length;
    throw new JsonError(line > 1 || text.includes("\n") ? `Line ${line}: ${reason}` : reason);
  }
  function next() {
    tokens.lastIndex = position;
    const match = tokens.exec(text);
    if (!match) {
      const rest = text.slice(position).trim();
      if (rest === "") fail("The value ends too early.");
      if (rest.startsWith("null")) fail("null is no value.");
      fail(`Here JSON is expected: ${rest.slice(0, 20)}`);
    }
    position = tokens.lastIndex;
    token = { string: match[1], number: match[2], word: match[3], sign: match[4] };
  }
  function list(close, readOne) {
    next();
    if (token.sign === close) return;
    for (;;) {
      readOne();
      next();
      if (token.sign === close) return;
      if (token.sign !== ",") fail(`A comma or ${close} is expected.`);
      next();
    }
  }
  function value() {
    if (token.string !== undefined) return { type: "string", text: JSON.parse(token.string) };
    if (token.word) return { type: "bool", text: token.word };
    if (token.number !== undefined) return numberNode(token.number);
    if (token.sign === "[") {
      const items = [];
      list("]", () => items.push(value()));
      return { type: "array", items };
    }
    if (token.sign === "{") {
      const members = [];
      list("}", () => members.push(member()));
      return tagged(members) ?? { type: "dictionary", members };
    }
    return fail("A value is expected.");
  }
  function numberNode(digits) {
    if (/[.eE]/.test(digits)) return { type: "double", text: digits };
    if (!isInteger64(digits)) {
      fail(`The integer ${digits.slice(0, 40)} does not fit in 64 bits. Write .0 after it for a double.`);
    }
    return { type: "integer", text: digits };
  }
  function member() {
    if (token.string === undefined) fail("A key in quotes is expected.");
    const key = JSON.parse(token.string);
    next();
    if (token.sign !== ":") fail("A colon is expected.");
    next();
    return [key, value()];
  }

  next();
  const node = value();
  if (text.slice(position).trim() !== "") fail("Only one value is expected.");
  return node;
}

// `raw`: the members as written, for a `$dictionary` around them.
function tagged(raw) {
  if (raw.length !== 1) return null;
  const [tag, inner] = raw[0];
  if (tag === "$dictionary") {
    const members = inner.raw ?? inner.members;
    return members ? { type: "dictionary", members, raw } : null;
  }
  if (inner.text === undefined) return null;
  if (tag === "$date") return { type: "date", text: inner.text, isSeconds: inner.type !== "string", raw };
  if (tag === "$data") return { type: "data", text: inner.text, raw };
  if (tag === "$double") return { type: "double", text: inner.text, isSpecial: true, raw };
  return null;
}

const tags = new Set(["$date", "$data", "$double", "$dictionary"]);

/** The JSON text of a node; with an indent, on several lines for people. */
export function print(node, indent = "", margin = "\n") {
  const inner = margin + indent;
  const [open, between, close] = indent ? [inner, `,${inner}`, margin] : ["", ",", ""];
  switch (node.type) {
    case "string": return quote(node.text);
    case "bool": case "integer": return node.text;
    case "double": return node.isSpecial ? `{"$double":${quote(node.text)}}` : node.text;
    case "date": return `{"$date":${node.isSeconds ? print(node.raw[0][1]) : quote(node.text)}}`;
    case "data": return `{"$data":${quote(node.text)}}`;
    case "array":
      if (node.items.length === 0) return "[]";
      return `[${open}${node.items.map((item) => print(item, indent, inner)).join(between)}${close}]`;
    default: {
      if (node.members.length === 0) return "{}";
      const colon = indent ? ": " : ":";
      const body = node.members
        .map(([key, item]) => quote(key) + colon + print(item, indent, inner)).join(between);
      const text = `{${open}${body}${close}}`;
      return node.members.length === 1 && tags.has(node.members[0][0])
        ? `{"$dictionary":${text}}` : text;
    }
  }
}

/** A JSON string in which invisible characters have numbers, so that a person sees them. */
export function quote(text) {
  return JSON.stringify(text).replace(
    /[\u007f-\u009f\u2028\u2029\ufff9-\ufffb]|\p{Bidi_C}|(?![\u200c\u200d\ufe0e\ufe0f])\p{DI}/gu,
    (character) => [...Array(character.length).keys()]
      .map((index) => `\\u${character.charCodeAt(index).toString(16).padStart(4, "0")}`).join(""));
}
