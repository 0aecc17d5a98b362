// Many alike at once: samples that the model takes for one class, the surest first. One click takes a sample out.

import { get, imageOf } from "./api.js";
import { count, h, mark, percent, say } from "./dom.js";
import { small } from "./small.js";

const AT_ONCE = 24;

export function open(main, app) {
  let open = true;
  let chosen = null;
  let points = null;
  const out = new Set();
  const body = h("div.screen.grid-screen", {});
  main.replaceChildren(body);

  const free = (place) => points.ids
    .map((id, index) => ({ id, index, chance: points.probability[index] ?? 0 }))
    .filter(({ id, index }) => points.predicted[index] === place && (points.states[index] === "free" || points.states[index] === "asked") && !app.outbox.has(id))
    .sort((one, other) => other.chance - one.chance);

  const draw = () => {
    if (!open) return;
    if (app.about.task === "regression") return body.replaceChildren(h("h1", {}, "Grid"), h("p.quiet", {}, "Numbers are given one at a time; the grid is for classes."));
    if (!points || points.model === null || !points.ids.length) return body.replaceChildren(h("h1", {}, "Grid"), h("p.quiet", {}, "The grid shows samples that a model takes for one class. It comes with the first training."));
    const sizes = points.classes.map((text, place) => ({ text, place, n: free(place).length }));
    chosen ??= sizes.reduce((best, one) => (one.n > best.n ? one : best), sizes[0]).place;
    const items = free(chosen).slice(0, AT_ONCE);
    const label = app.about.classes.find(({ text }) => text === points.classes[chosen])?.label;
    const keep = items.filter(({ id }) => !out.has(id));
    const confirm = h("button.primary", { type: "button", disabled: !keep.length || label === undefined, onclick: () => {
      for (const { id, index } of keep) {
        app.outbox.answer({ id, label, expects: null }, { id });
        points.states[index] = "labelled";
      }
      for (const { id } of items) out.delete(id);
      say(`${count(keep.length, "sample")} labelled ${points.classes[chosen]}.`);
      draw();
    } }, `Label ${keep.length} as ${points.classes[chosen]}`);
    body.replaceChildren(
      h("h1", {}, "Alike"),
      h("div.tabs", { role: "group", "aria-label": "Predicted class" }, sizes.map(({ text, place, n }) => h("button.plain", { type: "button", "aria-pressed": String(place === chosen), onclick: () => { chosen = place; draw(); } }, mark(place), text, h("span.quiet", {}, ` ${n}`)))),
      h("p.quiet", {}, "The model takes these for one class, the surest first. Click what does not belong, then confirm the rest."),
      h("ul.tiles", {}, items.map(({ id, chance }) => h("li", {}, h("button.tile", { type: "button", "aria-pressed": String(!out.has(id)), "aria-label": `${id}, ${out.has(id) ? "taken out" : "confirmed"}`, onclick: (event) => {
        if (out.has(id)) out.delete(id);
        else out.add(id);
        draw();
        body.querySelector(`[data-id="${CSS.escape(id)}"]`)?.focus();
      }, data: { id } }, app.about.kind === "images" ? h("img", { src: imageOf(id, "thumb"), alt: "", width: "144", height: "144" }) : small(app, id), h("span.quiet", {}, percent(chance)))))),
      h("p", {}, confirm));
  };
  const heard = (pulse, before) => pulse.model !== before.model && load();
  const load = () => get("/map").then((found) => { points = found; chosen = null; draw(); }, (error) => say(error.message || "The server does not answer.", { kind: "bad" }));
  app.listeners.add(heard);
  load();
  return () => {
    open = false;
    app.listeners.delete(heard);
  };
}
