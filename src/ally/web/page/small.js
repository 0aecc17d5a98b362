// A sample in a small place: a thumbnail, the beginning of a text, some columns.

import { get, imageOf } from "./api.js";
import { h } from "./dom.js";

export function small(app, id) {
  if (app.about.kind === "images") return h("img.small", { src: imageOf(id, "thumb"), alt: `sample ${id}`, width: "96", height: "96", loading: "lazy" });
  const place = h("div.small", {}, "…");
  get(`/samples?${new URLSearchParams({ id })}`).then((content) => {
    place.textContent = content.problem ?? (content.text ? content.text.slice(0, 280) : Object.entries(content.columns).slice(0, 6).map(([name, value]) => `${name} ${value ?? "–"}`).join(" · "));
  }, () => (place.textContent = id));
  return place;
}
