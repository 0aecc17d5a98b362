// Many alike at once: samples that the model takes for one class, the surest first and then those nearest to it. One
// click takes a sample out.

import { get, imageOf } from "./api.js";
import { count, h, mark, percent, say } from "./dom.js";
import { small } from "./small.js";

const AT_ONCE = 24;
const MOVES = { ArrowLeft: () => -1, ArrowRight: () => 1, ArrowUp: (across) => -across, ArrowDown: (across) => across };

export function open(main, app) {
  let open = true;
  let found = null;
  let chosen = "";
  const out = new Set();
  const told = new Set();
  const body = h("div.screen.grid-screen", {});
  main.replaceChildren(body);

  const place = (text) => app.about.classes.findIndex((one) => one.text === text);
  const samples = () => found.samples.filter(({ id }) => !told.has(id) && !app.outbox.has(id)).slice(0, AT_ONCE);
  const nothing = (words) => body.replaceChildren(h("h1", {}, "Alike"), h("p.quiet", {}, words));

  const confirm = () => {
    const label = app.about.classes[place(found.predicted)]?.label;
    const keep = samples().filter(({ id }) => !out.has(id));
    if (label === undefined || !keep.length) return;
    for (const { id } of keep) {
      app.outbox.answer({ id, label, expects: null }, { id });
      told.add(id);
    }
    for (const { id } of samples()) told.add(id); // what was taken out is not shown again
    say(`${count(keep.length, "sample")} labelled ${found.predicted}.`);
    load();
  };

  const tile = ({ id, probability }) => {
    const words = () => `${id}, ${out.has(id) ? "taken out" : "to be labelled"}`;
    const button = h("button.tile", { type: "button", "aria-pressed": String(!out.has(id)), "aria-label": words(), data: { id }, onclick: () => {
      if (!out.delete(id)) out.add(id);
      button.setAttribute("aria-pressed", String(!out.has(id)));
      button.setAttribute("aria-label", words());
      said();
    } }, app.about.widget === "image" ? h("img", { src: imageOf(id, "thumb"), alt: "", width: "144", height: "144" }) : small(app, id), h("span.quiet", {}, percent(probability)));
    return h("li", {}, button);
  };

  // What the button at the end does now.
  const said = () => {
    const n = samples().filter(({ id }) => !out.has(id)).length;
    body.querySelector(".primary").disabled = !n || place(found.predicted) < 0;
    body.querySelector(".primary span").textContent = `Label ${n} as ${found.predicted}`;
  };

  const draw = () => {
    if (!open) return;
    if (app.about.task === "regression") return nothing("Numbers are given one at a time; this screen is for classes.");
    if (!found || found.model === null || !found.classes.length) return nothing("Here come samples that a model takes for one class. It needs the first training.");
    body.replaceChildren(
      h("h1", {}, "Alike"),
      h("div.tabs", { role: "group", "aria-label": "Predicted class" }, found.classes.map(({ text, samples: n }) => h("button.plain", { type: "button", "aria-pressed": String(text === found.predicted), onclick: () => { chosen = text; load(); } }, mark(place(text)), text, h("span.quiet", {}, ` ${n}`)))),
      h("p.quiet", {}, "The model takes these for one class; they are near each other, the surest first. Click what does not belong, then label the rest."),
      h("ul.tiles", {}, samples().map(tile)),
      h("p.confirm", {}, h("button.primary", { type: "button", onclick: confirm }, h("kbd", {}, "⏎"), h("span"))));
    if (!samples().length) body.querySelector(".tiles").replaceWith(h("p", {}, "No such sample is left; choose another class."));
    said();
  };

  const load = () => get(`/alike?${new URLSearchParams({ predicted: chosen, n: String(Math.min(200, AT_ONCE + told.size)) })}`).then((some) => { found = some; draw(); }, (error) => say(error.message || "The server does not answer.", { kind: "bad" }));
  const heard = (pulse, before) => pulse.model !== before.model && load();
  const pressed = (event) => {
    if (event.target.closest?.("input, select")) return;
    const here = event.target.closest?.(".tile");
    if (event.key === "Enter" && !event.repeat && !event.target.closest?.("button:not(.tile), a")) {
      event.preventDefault(); // also on a tile: the space bar takes it out
      confirm();
    } else if (MOVES[event.key] && !event.ctrlKey && !event.metaKey && !event.altKey) {
      const tiles = [...body.querySelectorAll(".tile")];
      const across = tiles.filter((one) => one.offsetTop === tiles[0].offsetTop).length;
      const next = here ? tiles.indexOf(here) + MOVES[event.key](across) : 0;
      if (!tiles[next]) return;
      event.preventDefault();
      tiles[next].focus();
    }
  };
  app.listeners.add(heard);
  addEventListener("keydown", pressed);
  load();
  return () => {
    open = false;
    app.listeners.delete(heard);
    removeEventListener("keydown", pressed);
  };
}
