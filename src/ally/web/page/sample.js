// What a sample looks like: an image to zoom into, a text, the row of a table.

import { imageOf } from "./api.js";
import { h } from "./dom.js";

const PIECE = 4000;
const TINY = 128;

// Gives {content, element, viewer?} with images decoded: shown without a wait.
export async function build(content) {
  if (content.problem) return { content, element: problem(content) };
  if (content.image) {
    const viewer = new Viewer(content);
    try {
      await viewer.loaded;
    } catch {
      return { content: { ...content, problem: "broken" }, element: problem({ ...content, problem: "the image cannot be shown" }) };
    }
    const element = viewer.element;
    if (content.text) element.append(h("p.caption", {}, content.text));
    return { content, element, viewer };
  }
  if (content.text !== null) return { content, element: text(content) };
  return { content, element: card(content.columns) };
}

function problem(content) {
  return h("div.sample.broken", {},
    h("p", {}, h("strong", {}, "This sample cannot be shown.")),
    h("p", {}, content.problem),
    h("p.quiet", {}, content.id),
    h("p", {}, "Press the skip key to move on."));
}

// In pieces, so that a long text is laid out where it is looked at.
function text(content) {
  const pieces = [];
  let rest = content.text;
  while (rest.length > PIECE) {
    let at = rest.lastIndexOf("\n", PIECE);
    if (at < PIECE / 2) at = rest.lastIndexOf(" ", PIECE);
    if (at < PIECE / 2) at = PIECE - 1;
    pieces.push(rest.slice(0, at + 1));
    rest = rest.slice(at + 1);
  }
  pieces.push(rest);
  const body = h("div.sample.text", { tabindex: "0", role: "article", "aria-label": "The sample" },
    h("div.page", { data: { size: content.text.length < 200 ? "short" : content.text.length < 900 ? "middle" : "long" } },
      pieces.map((piece) => h("div.piece", {}, piece)),
      content.cut > 0 && h("p.quiet", {}, `${content.cut.toLocaleString("en")} more characters are not shown.`)));
  if (Object.keys(content.columns).length) body.append(card(content.columns));
  return body;
}

function card(columns) {
  const rows = Object.entries(columns).map(([name, value]) => {
    const empty = value === null || value === "";
    const number = typeof value === "number";
    const shown = empty ? "–" : number ? value.toLocaleString("en", { maximumFractionDigits: 6 }) : String(value);
    return h("div.field", {}, h("dt", {}, name), h("dd", { class: number ? "number" : empty ? "quiet" : "" }, shown));
  });
  return h("div.sample.table", { tabindex: "0", role: "article", "aria-label": "The sample" }, h("dl", {}, rows));
}

// An image that can be zoomed, moved and brightened.
export class Viewer {
  constructor(content) {
    this.content = content;
    const { width, height, stamp } = content.image;
    this.image = h("img", { src: imageOf(content.id, "view", stamp), alt: `sample ${content.id}`, draggable: "false", width, height });
    if (Math.max(width, height) <= TINY) this.image.classList.add("tiny");
    this.element = h("div.sample.image", {}, this.image);
    this.loaded = this.image.decode();
    this.zoom = 1;
    this.x = this.y = 0;
    this.light = 1;
    this.element.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
    this.element.addEventListener("pointerdown", (event) => this.#drag(event));
    this.element.addEventListener("dblclick", () => this.reset());
  }

  #wheel(event) {
    event.preventDefault();
    const box = this.element.getBoundingClientRect();
    const at = [event.clientX - box.x - box.width / 2, event.clientY - box.y - box.height / 2];
    this.zoomBy(Math.exp(-event.deltaY / 400), at);
  }

  #drag(event) {
    if (this.zoom === 1 || event.button) return;
    this.element.setPointerCapture(event.pointerId);
    const move = (next) => this.move(next.movementX, next.movementY);
    this.element.addEventListener("pointermove", move);
    this.element.addEventListener("pointerup", () => this.element.removeEventListener("pointermove", move), { once: true });
  }

  zoomBy(factor, [x, y] = [0, 0]) {
    const before = this.zoom;
    this.zoom = Math.min(16, Math.max(1, this.zoom * factor));
    const ratio = this.zoom / before;
    this.x = x - (x - this.x) * ratio;
    this.y = y - (y - this.y) * ratio;
    if (this.zoom === 1) this.x = this.y = 0;
    if (this.zoom > 1.2) this.#sharpen();
    this.#draw();
  }

  // More pixels, fetched when somebody looks closely.
  async #sharpen() {
    const { width, height, stamp } = this.content.image;
    if (this.sharp || Math.max(width, height) <= 1600) return;
    this.sharp = true;
    const large = new Image();
    large.src = imageOf(this.content.id, "large", stamp);
    await large.decode().catch(() => null);
    if (large.naturalWidth) this.image.src = large.src;
  }

  move(x, y) {
    this.x += x;
    this.y += y;
    this.#draw();
  }

  brighten(step) {
    this.light = Math.min(3, Math.max(0.3, this.light * Math.exp(step)));
    this.#draw();
  }

  reset() {
    this.zoom = this.light = 1;
    this.x = this.y = 0;
    this.#draw();
  }

  #draw() {
    this.image.style.transform = this.zoom === 1 ? "" : `translate(${this.x}px, ${this.y}px) scale(${this.zoom})`;
    this.image.style.filter = this.light === 1 ? "" : `brightness(${this.light})`;
    this.element.classList.toggle("zoomed", this.zoom > 1);
  }
}

// Marks words in the element that other texts have too, without changing it.
export function markWords(element, words) {
  if (!globalThis.Highlight || !CSS.highlights) return;
  const ranges = [];
  if (element && words.size) {
    for (const piece of element.querySelectorAll(".piece")) {
      const node = piece.firstChild;
      if (!node) continue;
      for (const found of node.data.matchAll(/[\p{L}\p{N}]+/gu)) {
        if (!words.has(found[0].toLowerCase())) continue;
        const range = new Range();
        range.setStart(node, found.index);
        range.setEnd(node, found.index + found[0].length);
        ranges.push(range);
        if (ranges.length === 400) break;
      }
    }
  }
  CSS.highlights.set("shared", new Highlight(...ranges));
}

export const wordsOf = (text) => new Set((text ?? "").slice(0, 20000).toLowerCase().match(/[\p{L}\p{N}]{4,}/gu) ?? []);
