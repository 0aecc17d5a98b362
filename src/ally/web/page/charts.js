// Small charts without a legend: lines are named at their end, an interval is a band, what is expected is dotted.

import { h, svg } from "./dom.js";

const nice = (span, parts) => {
  const rough = span / parts / 1.01 || 1;
  const unit = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((n) => n * unit).find((step) => step >= rough);
};

// Points {x, y, low?, high?, constant?} in order; `next` {x, y, low, high} is expected; `constantName` is what the answer that is always the same is called. Gives a figure that fills its place.
export function curve({ points, next, xName, yName, constantName, share = true }) {
  const width = 720, height = 300, left = 48, right = 76, top = 12, bottom = 36;
  const all = next ? [...points, next] : points;
  const xs = all.map((point) => point.x);
  const against = points.filter((point) => typeof point.constant === "number");
  const ys = all.flatMap((point) => [point.y, point.low ?? point.y, point.high ?? point.y, point.constant ?? point.y]);
  const x0 = Math.min(...xs), x1 = Math.max(...xs, x0 + 1);
  const y0 = share ? Math.max(0, Math.min(...ys) - 0.03) : Math.min(...ys), y1 = share ? Math.min(1, Math.max(...ys) + 0.03) : Math.max(...ys, y0 + 1e-6);
  const x = (value) => left + ((value - x0) / (x1 - x0)) * (width - left - right);
  const y = (value) => height - bottom - ((value - y0) / (y1 - y0 || 1)) * (height - top - bottom);
  const line = (some, pick) => some.map((point, index) => `${index ? "L" : "M"}${x(point.x).toFixed(1)},${y(pick(point)).toFixed(1)}`).join("");
  const banded = points.filter((point) => point.low !== null && point.low !== undefined);
  const band = banded.length > 1 ? `${line(banded, (point) => point.high)}${line([...banded].reverse(), (point) => point.low).replace("M", "L")}Z` : "";
  const step = nice(y1 - y0, 5);
  const ticks = [];
  for (let value = Math.ceil(y0 / step) * step; value <= y1 + 1e-9; value += step) ticks.push(value);
  const shown = (value) => (share ? `${Math.round(100 * value)} %` : Number(value.toPrecision(3)).toString());
  const last = points[points.length - 1];
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${yName} by ${xName}: ${points.map((point) => `${shown(point.y)} at ${point.x}`).join(", ")}` },
    ticks.map((value) => [
      svg("line", { class: "grid", x1: left, x2: width - right, y1: y(value), y2: y(value) }),
      svg("text", { class: "tick", x: left - 8, y: y(value) + 4, "text-anchor": "end" }, shown(value))]),
    [...new Set([x0, last.x, x1])].map((value) => svg("text", { class: "tick", x: x(value), y: height - bottom + 18, "text-anchor": "middle" }, value.toLocaleString("en"))),
    svg("text", { class: "tick", x: (left + width - right) / 2, y: height - 4, "text-anchor": "middle" }, xName),
    svg("path", { class: "band", d: band }),
    against.length > 0 && svg("path", { class: "constant", d: line([...against, { ...against[against.length - 1], x: x1 }], (point) => point.constant) }),
    against.length > 0 && svg("text", { class: "tick", x: x(x1) - 4, y: y(against[against.length - 1].constant) - 6, "text-anchor": "end" }, `${constantName}: ${shown(against[against.length - 1].constant)}`),
    next && svg("path", { class: "next", d: line([last, next], (point) => point.y) }),
    next && svg("line", { class: "next", x1: x(next.x), x2: x(next.x), y1: y(Math.max(y0, next.low)), y2: y(Math.min(y1, next.high)) }),
    svg("path", { class: "line", d: line(points, (point) => point.y) }),
    points.map((point) => svg("circle", { class: "dot", cx: x(point.x), cy: y(point.y), r: 3.5 }, svg("title", {}, `${shown(point.y)} at ${point.x}`))),
    svg("text", { class: "name", x: x(last.x) + (next ? 0 : 8), y: y(last.y) - (next ? 12 : -4), "text-anchor": next ? "middle" : "start" }, shown(last.y)),
    next && svg("text", { class: "tick", x: x(next.x) + 8, y: y(next.y) + 4 }, "expected"));
  return h("figure.chart", {}, picture);
}

// Bars with their numbers; [{text, n, mark}].
export function bars(rows) {
  const most = Math.max(1, ...rows.map((row) => row.n));
  return h("dl.bars", {}, rows.map((row) => h("div", {},
    h("dt", { title: row.text }, row.mark, row.text),
    h("dd", {}, h("span.bar", { style: { width: `${(100 * row.n) / most}%` } }), h("span.n", {}, row.n.toLocaleString("en"))))));
}
