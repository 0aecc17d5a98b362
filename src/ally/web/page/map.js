// The pool in two dimensions: small points, labelled ones larger, asked ones ringed; many are drawn as density.

import { get, imageOf } from "./api.js";
import { h, percent } from "./dom.js";
import { small } from "./small.js";

const DENSE = 10000;

// As `mark` has it: a disc, a square, a triangle, a diamond, and again.
function sign(path, index, x, y) {
  const shape = (index + Math.floor(index / 8)) % 4;
  if (shape === 0) {
    path.moveTo(x + 4.5, y);
    path.arc(x, y, 4.5, 0, 7);
  } else if (shape === 1) path.rect(x - 4, y - 4, 8, 8);
  else {
    const corners = shape === 2 ? [[0, -5.5], [5, 4], [-5, 4]] : [[0, -5.5], [5.5, 0], [0, 5.5], [-5.5, 0]];
    corners.forEach(([dx, dy], place) => (place ? path.lineTo(x + dx, y + dy) : path.moveTo(x + dx, y + dy)));
    path.closePath();
  }
}

export class Cloud {
  constructor(app) {
    this.app = app;
    this.by = "class";
    this.zoom = 1;
    this.x = this.y = 0;
    this.canvas = h("canvas", { tabindex: "0", role: "img", "aria-label": "Map of the pool; arrows move it, + and - zoom, a click opens a sample" });
    this.words = h("p.quiet", {}, "The map comes with the first training.");
    this.picked = h("div.picked-sample", { hidden: true });
    this.element = h("div.map", {}, h("div.map-tools", {},
      ["class", "guess", "doubt"].map((by) => h("label.option", {}, h("input", { type: "radio", name: "by", checked: by === this.by, onchange: () => { this.by = by; this.#paint(); } }), { class: "by label", guess: "by guess", doubt: "by doubt" }[by])),
      this.words), h("div.map-stage", {}, this.canvas, this.picked));
    this.canvas.addEventListener("wheel", (event) => { event.preventDefault(); this.#zoomBy(Math.exp(-event.deltaY / 400), event.offsetX, event.offsetY); }, { passive: false });
    this.canvas.addEventListener("pointerdown", (event) => this.#drag(event));
    this.canvas.addEventListener("keydown", (event) => this.#key(event));
    this.observer = new ResizeObserver(() => this.#paint());
    this.observer.observe(this.canvas);
    this.scheme = matchMedia("(prefers-color-scheme: dark)");
    this.repaint = () => this.#paint();
    this.scheme.addEventListener("change", this.repaint);
    this.heard = (pulse, before) => (pulse.model !== before.model || pulse.last_answer !== before.last_answer) && this.load();
    app.listeners.add(this.heard);
    this.load();
  }

  close() {
    this.observer.disconnect();
    this.scheme.removeEventListener("change", this.repaint);
    this.app.listeners.delete(this.heard);
  }

  async load() {
    if (this.loading) return;
    this.loading = true;
    try {
      this.points = await get("/map");
    } catch {
      return;
    } finally {
      this.loading = false;
    }
    const { ids, states, model } = this.points;
    if (model === null) return;
    const labelled = states.filter((state) => state === "labelled").length;
    const asked = states.filter((state) => state === "asked").length;
    this.words.textContent = `${ids.length.toLocaleString("en")} samples, ${labelled.toLocaleString("en")} labelled, ${asked.toLocaleString("en")} asked; a click opens one`;
    this.#paint();
  }

  // Once a frame, however often something moves.
  #paint() {
    if (this.due) return;
    this.due = requestAnimationFrame(() => {
      this.due = 0;
      const started = performance.now();
      this.#draw();
      performance.measure("ally map", { start: started, end: performance.now() });
    });
  }

  #at(index) {
    return [(this.points.x[index] * 0.92 + 0.04) * this.width * this.zoom + this.x, (1 - (this.points.y[index] * 0.92 + 0.04)) * this.height * this.zoom + this.y];
  }

  #draw() {
    if (!this.points || this.points.model === null || !this.canvas.isConnected) return;
    const ratio = Math.min(2, devicePixelRatio || 1);
    const box = this.canvas.getBoundingClientRect();
    [this.width, this.height] = [box.width, box.height];
    if (this.canvas.width !== Math.round(box.width * ratio)) this.canvas.width = Math.round(box.width * ratio);
    if (this.canvas.height !== Math.round(box.height * ratio)) this.canvas.height = Math.round(box.height * ratio);
    const pen = this.canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, box.width, box.height);
    const style = getComputedStyle(document.documentElement);
    const colours = Array.from({ length: 8 }, (_, n) => style.getPropertyValue(`--c${n}`).trim());
    const quiet = style.getPropertyValue("--quiet").trim();
    const { ids, states, labels, predicted, probability } = this.points;
    const classes = this.app.about.task === "classification";
    const low = classes ? 0 : Math.min(...predicted.filter(Number.isFinite)), high = classes ? 1 : Math.max(...predicted.filter(Number.isFinite));
    // One path for each colour and size: ten thousand points in a few calls.
    const free = new Map();
    const marked = new Map();
    const ringed = [];
    const colour = (value) => (value === null ? quiet : classes ? colours[value % 8] : colours[Math.min(7, Math.floor((7.99 * (value - low)) / (high - low || 1)))]);
    const dense = ids.length * this.zoom ** -2 > DENSE;
    for (let index = 0; index < ids.length; index++) {
      const [x, y] = this.#at(index);
      if (x < -5 || y < -5 || x > box.width + 5 || y > box.height + 5) continue;
      const state = states[index];
      const doubt = probability[index] === null ? 0 : 1 - probability[index];
      const ink = this.by === "doubt" ? (doubt > 0.5 ? colours[6] : doubt > 0.25 ? colours[4] : colours[7]) : this.by === "guess" || state === "free" || state === "asked" ? (this.by === "class" ? quiet : colour(predicted[index])) : colour(labels[index]);
      const fine = ids.length > 3000 ? 1 : 1.5;
      const into = state === "labelled" ? marked : free;
      if (!into.has(ink)) into.set(ink, new Path2D());
      const path = into.get(ink);
      if (state === "labelled") sign(path, classes ? labels[index] : 0, x, y);
      else path.rect(x - fine, y - fine, 2 * fine, 2 * fine);
      if (state === "asked") ringed.push([x, y]);
    }
    pen.globalAlpha = dense ? 0.25 : 0.6;
    for (const [ink, path] of free) {
      pen.fillStyle = ink;
      pen.fill(path);
    }
    pen.globalAlpha = 1;
    for (const [ink, path] of marked) {
      pen.fillStyle = ink;
      pen.fill(path);
    }
    pen.strokeStyle = style.getPropertyValue("--ink").trim();
    pen.beginPath();
    for (const [x, y] of ringed.slice(0, 500)) {
      pen.moveTo(x + 6, y);
      pen.arc(x, y, 6, 0, 7);
    }
    pen.stroke();
  }

  #zoomBy(factor, x = this.width / 2, y = this.height / 2) {
    const before = this.zoom;
    this.zoom = Math.min(60, Math.max(1, before * factor));
    const ratio = this.zoom / before;
    this.x = this.zoom === 1 ? 0 : x - (x - this.x) * ratio;
    this.y = this.zoom === 1 ? 0 : y - (y - this.y) * ratio;
    this.#paint();
  }

  #drag(event) {
    let moved = 0;
    this.canvas.setPointerCapture(event.pointerId);
    const move = (next) => {
      moved += Math.abs(next.movementX) + Math.abs(next.movementY);
      this.x += next.movementX;
      this.y += next.movementY;
      this.#paint();
    };
    this.canvas.addEventListener("pointermove", move);
    this.canvas.addEventListener("pointerup", (end) => {
      this.canvas.removeEventListener("pointermove", move);
      if (moved < 4) this.#pick(end.offsetX, end.offsetY);
    }, { once: true });
  }

  #key(event) {
    const step = { ArrowLeft: [40, 0], ArrowRight: [-40, 0], ArrowUp: [0, 40], ArrowDown: [0, -40] }[event.key];
    if (step) {
      this.x += step[0];
      this.y += step[1];
      this.#paint();
    } else if (event.key === "+" || event.key === "=") this.#zoomBy(1.4);
    else if (event.key === "-") this.#zoomBy(1 / 1.4);
    else if (event.key === "Enter") this.#pick(this.width / 2, this.height / 2, Infinity);
    else return;
    event.preventDefault();
  }

  // Opens the sample nearest to a place.
  #pick(x, y, reach = 12) {
    if (!this.points?.ids.length) return;
    let best = -1, gap = reach * reach;
    this.points.ids.forEach((_, index) => {
      const [px, py] = this.#at(index);
      const far = (px - x) ** 2 + (py - y) ** 2;
      if (far < gap) [best, gap] = [index, far];
    });
    this.picked.hidden = best < 0;
    if (best < 0) return;
    const id = this.points.ids[best];
    const text = (value) => (value === null ? null : this.app.about.task === "classification" ? this.points.classes[value] : value.toPrecision(4));
    const guess = this.app.label.guesses ? text(this.points.predicted[best]) : null;
    this.picked.replaceChildren(
      h("button", { type: "button", "aria-label": "Close", onclick: () => (this.picked.hidden = true) }, "×"),
      this.app.about.kind === "images" ? h("img", { src: imageOf(id, "view"), alt: `sample ${id}` }) : small(this.app, id),
      h("p.quiet.id", {}, id),
      h("p", {}, text(this.points.labels[best]) === null ? "not labelled" : ["labelled ", h("strong", {}, text(this.points.labels[best]))]),
      guess !== null && h("p.quiet", {}, `guess ${guess}`, this.points.probability[best] === null ? "" : ` ${percent(this.points.probability[best])}`));
  }
}
