// Elements from data. Whatever comes from samples, classes or people becomes a text node, never markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(element.style, value);
    else if (name === "data") Object.assign(element.dataset, value);
    else if (value === true) element.setAttribute(name, "");
    else element.setAttribute(name, String(value));
  }
  element.append(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export function h(tag, properties, ...children) {
  const [name, ...classes] = tag.split(".");
  const element = document.createElement(name || "div");
  if (classes.length) element.className = classes.join(" ");
  return fill(element, properties, children);
}

export function svg(tag, properties, ...children) {
  return fill(document.createElementNS(SVG, tag), properties, children);
}

const SIGNS = ["●", "■", "▲", "◆", "★", "✚", "⬟", "▼"];

// A class has a colour and a sign; neighbours in the list differ in both.
export function mark(index) {
  const colour = index % 8;
  const sign = SIGNS[(index + Math.floor(index / 8)) % 8];
  return h("span.mark", { "aria-hidden": "true", data: { colour } }, index < 0 ? "–" : sign);
}

// One place for messages, announced politely, gone by themselves unless they need an answer.
export function say(text, { choices = [], stays = false, kind = "plain" } = {}) {
  const place = document.getElementById("messages");
  const message = h("div.message", { data: { kind } }, h("span", {}, text));
  const end = () => message.remove();
  for (const [name, act] of choices) {
    message.append(h("button", { type: "button", onclick: () => { end(); act(); } }, name));
  }
  if (stays || choices.length) message.append(h("button", { type: "button", "aria-label": "Close", onclick: end }, "×"));
  else setTimeout(end, 5000);
  while (place.children.length > 2) place.firstChild.remove();
  place.append(message);
  return end;
}

// Nearly sure is not sure.
export const percent = (share) => (share < 1 && share >= 0.995 ? "> 99 %" : `${Math.round(100 * share)} %`);
export const count = (n, one, many = `${one}s`) => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;

// Calls `act` at once, and then no sooner than `pause` milliseconds after the last time; the last call is never left out.
export function seldom(pause, act) {
  let last = -Infinity, timer = 0;
  return () => {
    if (timer) return;
    timer = setTimeout(() => {
      timer = 0;
      last = performance.now();
      act();
    }, Math.max(0, last + pause - performance.now()));
  };
}
