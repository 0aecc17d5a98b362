// A sample in a small place: a thumbnail, the beginning of a text, some columns.

import { get, imageOf } from "./api.js";
import { h } from "./dom.js";

const LETTERS = 400;
const COLUMNS = 6;

export function small(app, id) {
  if (app.about.widget === "image") return h("img.small", { src: imageOf(id, "thumb"), alt: `sample ${id}`, width: "96", height: "96", loading: "lazy" });
  const place = h("div.small", {}, "…");
  get(`/samples?${new URLSearchParams({ id })}`).then((content) => {
    if (content.problem ?? content.text) place.textContent = (content.problem ?? content.text).slice(0, LETTERS);
    else place.replaceChildren(...Object.entries(content.columns).slice(0, COLUMNS).map(([name, value]) => h("span.line", {}, h("span.quiet", {}, `${name} `), String(value ?? "–"))));
  }, () => (place.textContent = id));
  return place;
}
