import { h } from "./dom.js";
export function open(main) { main.replaceChildren(h("div.screen", {}, h("h1", {}, "…"))); return () => {}; }
