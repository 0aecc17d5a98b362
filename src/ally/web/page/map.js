// The pool in two dimensions: small points, labelled ones larger, asked ones ringed; many are drawn as density.
//
// Points are typed arrays, sorted by colour once, and every frame writes them into one block of pixels: a frame of ten
// thousand makes no objects and takes a few milliseconds.

import { get, imageOf } from "./api.js";
import { h, percent, seldom } from "./dom.js";
import { small } from "./small.js";

const DENSE = 10000;
const EDGE = 0.04;
const FREE = 0, ASKED = 1, LABELLED = 2, SKIPPED = 3;
const STATES = { free: FREE, asked: ASKED, labelled: LABELLED, skipped: SKIPPED };
const QUIET = 8;
const REST = 5000;

// The signs of `mark`, in its order; and a ring.
const SHAPES = [
  (pen) => pen.arc(0, 0, 4.5, 0, 7),
  (pen) => pen.rect(-4, -4, 8, 8),
  (pen) => corners(pen, [[0, -5.5], [5, 4], [-5, 4]]),
  (pen) => corners(pen, [[0, -5.5], [5.5, 0], [0, 5.5], [-5.5, 0]]),
  (pen) => corners(pen, around(10, (place) => (place % 2 ? 2.6 : 6.5))),
  (pen) => {
    pen.rect(-1.8, -5, 3.6, 10);
    pen.rect(-5, -1.8, 10, 3.6);
  },
  (pen) => corners(pen, around(5, () => 5.2)),
  (pen) => corners(pen, [[0, 5.5], [5, -4], [-5, -4]]),
];
const RING = (pen) => pen.arc(0, 0, 6, 0, 7);
const ABOVE = 2, BELOW = 7; // shapes of guesses beyond all numbers that people told

// n corners, the first at the top, each so far from the middle.
const around = (n, far) => Array.from({ length: n }, (_, place) => [far(place) * Math.sin((2 * Math.PI * place) / n), -far(place) * Math.cos((2 * Math.PI * place) / n)]);

function corners(pen, places) {
  places.forEach(([x, y], index) => (index ? pen.lineTo(x, y) : pen.moveTo(x, y)));
  pen.closePath();
}

// A shape as pixels around its middle: {dx, dy, alpha}, three arrays.
function pixels(shape, ratio, stroked = false) {
  const side = Math.ceil(16 * ratio), half = side >> 1;
  const pen = new OffscreenCanvas(side, side).getContext("2d", { willReadFrequently: true });
  pen.setTransform(ratio, 0, 0, ratio, half, half);
  pen.beginPath();
  shape(pen);
  if (stroked) pen.stroke();
  else pen.fill();
  const { data } = pen.getImageData(0, 0, side, side);
  const found = { dx: [], dy: [], alpha: [] };
  for (let at = 0; at < side * side; at++) {
    if (data[4 * at + 3] < 24) continue;
    found.dx.push((at % side) - half);
    found.dy.push(Math.floor(at / side) - half);
    found.alpha.push(data[4 * at + 3]);
  }
  return { dx: Int8Array.from(found.dx), dy: Int8Array.from(found.dy), alpha: Uint8Array.from(found.alpha) };
}

// A colour of the style sheet as the bytes of a pixel without its alpha.
function bytes(pen, colour) {
  pen.clearRect(0, 0, 1, 1);
  pen.fillStyle = colour;
  pen.fillRect(0, 0, 1, 1);
  const [red, green, blue] = pen.getImageData(0, 0, 1, 1).data;
  return red | (green << 8) | (blue << 16);
}

export class Cloud {
  constructor(app) {
    this.app = app;
    this.by = "class";
    this.zoom = 1;
    this.x = this.y = 0;
    this.width = this.height = 0;
    this.chosen = -1;
    this.canvas = h("canvas", { tabindex: "0", role: "img", "aria-label": "Map of the pool; arrows move it, + and - zoom, Enter or a click opens a sample" });
    this.pen = this.canvas.getContext("2d", { willReadFrequently: true });
    this.words = h("p.quiet", {}, "The map appears after the first training.");
    this.picked = h("div.picked-sample", { hidden: true });
    this.element = h("div.map", {}, h("div.map-tools", {},
      ["class", "guess", "doubt"].map((by) => h("label.option", {}, h("input", { type: "radio", name: "by", checked: by === this.by, onchange: () => { this.by = by; this.#colour(); } }), { class: "by label", guess: "by guess", doubt: "by uncertainty" }[by])),
      this.words), h("div.map-stage", {}, this.canvas, this.picked));
    this.canvas.addEventListener("wheel", (event) => { event.preventDefault(); this.#zoomBy(Math.exp(-event.deltaY / 400), event.offsetX, event.offsetY); }, { passive: false });
    this.canvas.addEventListener("pointerdown", (event) => this.#drag(event));
    this.canvas.addEventListener("keydown", (event) => this.#key(event));
    this.observer = new ResizeObserver(() => this.#resize());
    this.observer.observe(this.canvas);
    this.scheme = matchMedia("(prefers-color-scheme: dark)");
    this.recolour = () => this.#inks();
    this.scheme.addEventListener("change", this.recolour);
    this.themed = new MutationObserver(this.recolour);
    this.themed.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    const again = seldom(REST, () => this.load());
    this.heard = (pulse, before) => {
      if (pulse.model !== before.model) this.load();
      else if (pulse.last_answer !== before.last_answer) again();
    };
    app.listeners.add(this.heard);
    this.load();
  }

  close() {
    this.observer.disconnect();
    this.themed.disconnect();
    this.scheme.removeEventListener("change", this.recolour);
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
    const { ids, states, model, x, y } = this.points;
    if (model === null) return;
    const n = ids.length;
    this.placeX = Float32Array.from(x, (value) => value * (1 - 2 * EDGE) + EDGE);
    this.placeY = Float32Array.from(y, (value) => 1 - (value * (1 - 2 * EDGE) + EDGE));
    this.state = Uint8Array.from(states, (state) => STATES[state]);
    this.ink = new Uint8Array(n);
    this.shape = Uint8Array.from(this.points.labels, (label) => (label === null || !this.#named ? 0 : (label + Math.floor(label / 8)) % 8));
    this.beyond = this.#named ? [] : this.#outliers();
    this.#inks();
  }

  // Samples whose guess lies beyond all numbers that people told.
  #outliers() {
    const { labels, predicted } = this.points;
    const told = labels.filter(Number.isFinite);
    if (!told.length) return [];
    const [low, high] = [told.reduce((one, other) => Math.min(one, other)), told.reduce((one, other) => Math.max(one, other))];
    const found = [];
    predicted.forEach((value, at) => {
      if (value === null || this.state[at] === LABELLED || (value >= low && value <= high)) return;
      found.push(at);
      this.shape[at] = value > high ? ABOVE : BELOW;
    });
    return found;
  }

  #describe() {
    const count = (wanted) => this.state.reduce((sum, state) => sum + (state === wanted), 0).toLocaleString("en");
    const marked = this.by === "guess" && this.beyond.length ? `, ${this.beyond.length.toLocaleString("en")} guesses beyond all numbers so far (triangles)` : "";
    this.words.textContent = `${this.state.length.toLocaleString("en")} samples, ${count(LABELLED)} labelled, ${count(ASKED)} asked${marked}; a click opens one`;
  }

  get #named() {
    return this.app.about.task === "classification";
  }

  // Colours of the style sheet, as the theme has them now.
  #inks() {
    const style = getComputedStyle(document.documentElement);
    const pen = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
    const named = [...Array.from({ length: 8 }, (_, n) => `--c${n}`), "--quiet", "--ink", "--accent"];
    this.colours = Uint32Array.from(named, (name) => bytes(pen, style.getPropertyValue(name).trim()));
    this.#colour();
  }

  // The colour of each point, by what was chosen.
  #colour() {
    if (!this.state || !this.colours) return;
    const { labels, predicted, probability } = this.points;
    const values = predicted.filter(Number.isFinite);
    const low = values.reduce((one, other) => Math.min(one, other), Infinity), span = values.reduce((one, other) => Math.max(one, other), -Infinity) - low || 1;
    const ink = (value) => (value === null ? QUIET : this.#named ? value % 8 : Math.max(0, Math.min(7, Math.floor((7.99 * (value - low)) / span))));
    for (let at = 0; at < this.ink.length; at++) {
      const doubt = probability[at] === null ? 0 : 1 - probability[at];
      if (this.by === "doubt") this.ink[at] = doubt > 0.5 ? 6 : doubt > 0.25 ? 4 : 7;
      else if (this.by === "guess") this.ink[at] = ink(predicted[at]);
      else this.ink[at] = this.state[at] === LABELLED ? ink(labels[at]) : QUIET;
    }
    this.#describe();
    this.#paint();
  }

  #resize() {
    const ratio = Math.min(2, devicePixelRatio || 1);
    const [width, height] = [this.canvas.clientWidth, this.canvas.clientHeight];
    if (!width || !height) return;
    [this.width, this.height] = [width, height];
    if (this.ratio !== ratio) {
      this.ratio = ratio;
      this.shapes = SHAPES.map((shape) => pixels(shape, ratio));
      this.ring = pixels(RING, ratio, true);
    }
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.block = this.pen.createImageData(this.canvas.width, this.canvas.height);
    this.cells = new Uint32Array(this.block.data.buffer);
    this.#draw(); // at once: a canvas of another size is empty
  }

  // Once a frame, however often something moves.
  #paint() {
    this.due ||= requestAnimationFrame(() => {
      this.due = 0;
      const started = performance.now();
      this.#draw();
      performance.measure("ally map", { start: started, end: performance.now() });
    });
  }

  #draw() {
    if (!this.state || !this.cells) return;
    const { cells, placeX, placeY, state, ink, shape, colours, ratio } = this;
    const { width, height } = this.block;
    const scaleX = this.width * this.zoom * ratio, scaleY = this.height * this.zoom * ratio;
    const shiftX = this.x * ratio, shiftY = this.y * ratio;
    const n = state.length;
    const side = Math.max(2, Math.round((n > 3000 ? 2 : 3) * ratio)), half = side >> 1;
    const dense = n / this.zoom ** 2 > DENSE;
    const first = (dense ? 64 : 153) << 24, more = dense ? 64 : 51;
    cells.fill(0);
    for (let at = 0; at < n; at++) {
      if (state[at] === LABELLED) continue;
      const left = Math.round(placeX[at] * scaleX + shiftX) - half, top = Math.round(placeY[at] * scaleY + shiftY) - half;
      if (left < 0 || top < 0 || left + side > width || top + side > height) continue;
      const colour = colours[ink[at]];
      for (let row = top * width + left, end = row + side * width; row < end; row += width) {
        for (let cell = row; cell < row + side; cell++) {
          const before = cells[cell] >>> 24; // where points lie on each other they are darker
          cells[cell] = before ? colour | (Math.min(255, before + more) << 24) : colour | first;
        }
      }
    }
    for (let at = 0; at < n; at++) {
      if (state[at] === LABELLED) this.#stamp(this.shapes[shape[at]], colours[ink[at]], Math.round(placeX[at] * scaleX + shiftX), Math.round(placeY[at] * scaleY + shiftY));
    }
    for (const at of this.by === "guess" ? this.beyond : []) this.#stamp(this.shapes[shape[at]], colours[ink[at]], Math.round(placeX[at] * scaleX + shiftX), Math.round(placeY[at] * scaleY + shiftY));
    for (let at = 0; at < n; at++) {
      if (state[at] === ASKED) this.#stamp(this.ring, colours[QUIET + 1], Math.round(placeX[at] * scaleX + shiftX), Math.round(placeY[at] * scaleY + shiftY));
    }
    if (this.chosen >= 0) this.#stamp(this.ring, colours[QUIET + 2], Math.round(placeX[this.chosen] * scaleX + shiftX), Math.round(placeY[this.chosen] * scaleY + shiftY));
    this.pen.putImageData(this.block, 0, 0);
  }

  // A shape around a place. Its edge is thin: it goes over what is empty only.
  #stamp({ dx, dy, alpha }, colour, x, y) {
    const { width, height } = this.block;
    if (x < -16 || y < -16 || x > width + 16 || y > height + 16) return;
    const { cells } = this;
    for (let at = 0; at < dx.length; at++) {
      const column = x + dx[at], row = y + dy[at];
      if (column < 0 || row < 0 || column >= width || row >= height) continue;
      const cell = row * width + column;
      if (alpha[at] > 127 || cells[cell] === 0) cells[cell] = colour | (alpha[at] << 24);
    }
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
    else if (event.key === "Escape") this.#close();
    else return;
    event.preventDefault();
  }

  // Opens the sample nearest to a place.
  #pick(x, y, reach = 12) {
    if (!this.state) return;
    let best = -1, gap = reach * reach;
    for (let at = 0; at < this.state.length; at++) {
      const far = (this.placeX[at] * this.width * this.zoom + this.x - x) ** 2 + (this.placeY[at] * this.height * this.zoom + this.y - y) ** 2;
      if (far < gap) {
        best = at;
        gap = far;
      }
    }
    if (best < 0) return this.#close();
    this.chosen = best;
    this.picked.hidden = false;
    const id = this.points.ids[best];
    const text = (value) => (value === null ? null : this.#named ? this.points.classes[value] : value.toPrecision(4));
    const guess = this.app.label.guesses ? text(this.points.predicted[best]) : null;
    this.picked.replaceChildren(
      h("button", { type: "button", "aria-label": "Close", onclick: () => this.#close() }, "×"),
      this.app.about.widget === "image" ? h("img", { src: imageOf(id, "view"), alt: `sample ${id}` }) : small(this.app, id),
      h("p.quiet.id", {}, id),
      h("p", {}, text(this.points.labels[best]) === null ? "not labelled" : ["labelled ", h("strong", {}, text(this.points.labels[best]))]),
      guess !== null && h("p.quiet", {}, `guess ${guess}`, this.points.probability[best] === null ? "" : ` ${percent(this.points.probability[best])}`, this.beyond.includes(best) ? ", beyond all numbers so far" : ""));
    this.#paint();
  }

  #close() {
    this.picked.hidden = true;
    this.chosen = -1;
    this.#paint();
  }
}
