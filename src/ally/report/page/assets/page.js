"use strict";
const charts = JSON.parse(document.getElementById("curves").textContent);
const dark = window.matchMedia("(prefers-color-scheme: dark)");
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const see_through = (hex, alpha) => `rgba(${[1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)).join(",")},${alpha})`;
// Names come from a file: plotly reads some tags in texts, so that they are spelt out.
const plain = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
const fitted = (text) => (window.innerWidth < 700 && text.length > 30 ? text.slice(0, 29) + "…" : text);
const hidden = new Map(charts.map((chart) => [chart, new Set(chart.series.filter((s) => !s.shown).map((s) => s.name))]));

function edges(series, band) {
  if (band === "none") return null;
  const low = band === "ci" ? series.low : series.mean.map((m, i) => (series.std[i] === null ? null : m - series.std[i]));
  const high = band === "ci" ? series.high : series.mean.map((m, i) => (series.std[i] === null ? null : m + series.std[i]));
  const seen = series.labels.map((_, i) => i).filter((i) => low[i] !== null);
  return seen.length < 2 ? null : { x: seen.map((i) => series.labels[i]), low: seen.map((i) => low[i]), high: seen.map((i) => high[i]) };
}

function traces(chart, band) {
  const all = [], few = chart.series.length - hidden.get(chart).size <= 4;
  chart.series.forEach((series, place) => {
    const ink = dark.matches ? series.dark : series.colour;
    const group = { legendgroup: String(place), visible: hidden.get(chart).has(series.name) ? "legendonly" : true };
    const edge = series.banded || few ? edges(series, band) : null;
    if (edge) {
      all.push({ ...group, x: edge.x.concat(edge.x.slice().reverse()), y: edge.high.concat(edge.low.slice().reverse()), fill: "toself",
        fillcolor: see_through(ink, 0.15), line: { width: 0 }, mode: "lines", hoverinfo: "skip", showlegend: false, series: series.name });
    }
    const spread = series.std.map((s, i) => (s === null ? "one seed" : `± ${s.toPrecision(2)}, ${series.seeds[i]} seeds`));
    all.push({ ...group, x: series.labels, y: series.mean, customdata: spread, series: series.name,
      name: plain(fitted(series.name)) + (chart.smoothed ? " (smoothed)" : ""), mode: "lines+markers",
      line: { color: ink, width: series.width, dash: series.dashed ? "dash" : "solid" },
      marker: { color: ink, symbol: series.symbol, size: series.strong ? 8 : 6 },
      hovertemplate: `${plain(series.name)}: %{y:.4~f} (%{customdata})<extra></extra>` });
  });
  if (inside(chart)) {
    const xs = chart.series.flatMap((s) => s.labels);
    all.push({ x: [Math.min(...xs), Math.max(...xs)], y: [chart.constant.value, chart.constant.value], name: chart.constant.name, mode: "lines",
      line: { color: colour("--text"), width: 1.5, dash: "dot" }, hovertemplate: `${chart.constant.name}: %{y:.4~f}<extra></extra>` });
  }
  return all;
}

// One answer for all samples: the axis grows by up to half for its line; beyond that it is written at the edge.
function inside(chart) {
  if (!chart.constant) return false;
  const [low, high] = fit(chart), half = (high - low) / 2;
  return low - half <= chart.constant.value && chart.constant.value <= high + half;
}

// Bands of few seeds are wide: the axis fits the curves.
function fit(chart) {
  const shown = chart.series.filter((s) => !hidden.get(chart).has(s.name));
  const values = (shown.length ? shown : chart.series).flatMap((s) => s.mean);
  const low = Math.min(...values), high = Math.max(...values), room = 0.08 * (high - low) || 0.05 * (Math.abs(high) || 1);
  return [low - room, high + room];
}

function span(chart) {
  const [low, high] = fit(chart), room = 0.05 * (high - low);
  return inside(chart) ? [Math.min(low, chart.constant.value - room), Math.max(high, chart.constant.value + room)] : [low, high];
}

function outside(chart) {
  if (!chart.constant || inside(chart)) return [];
  const above = chart.constant.value > fit(chart)[1];
  return [{ text: `${chart.constant.name}: ${chart.constant.value} ${above ? "↑" : "↓"}`, showarrow: false, xref: "paper", yref: "paper",
    x: 1, xanchor: "right", y: above ? 1 : 0, yanchor: above ? "top" : "bottom", font: { size: 12 } }];
}

function layout(chart, scale) {
  const narrow = window.innerWidth < 700;
  const axis = { gridcolor: colour("--grid"), linecolor: colour("--line"), zeroline: false, automargin: true };
  const rows = narrow ? chart.series.length : Math.ceil(chart.series.length / 5);
  return { paper_bgcolor: colour("--back"), plot_bgcolor: colour("--back"), font: { color: colour("--text"), size: narrow ? 12 : 14 },
    height: 400 + 22 * Math.min(rows, 14) + 40, margin: { l: 10, r: 10, t: 16, b: 10 }, hovermode: narrow ? "closest" : "x unified",
    hoverlabel: { bgcolor: colour("--soft"), bordercolor: colour("--line"), font: { color: colour("--text"), size: 12 } },
    xaxis: { ...axis, title: { text: "labels bought" }, type: scale }, yaxis: { ...axis, title: { text: chart.axis }, range: span(chart) }, annotations: outside(chart),
    legend: { orientation: "h", y: -0.2, yanchor: "top", x: 0, font: { size: 12 }, itemwidth: 30 } };
}

function draw() {
  const band = document.getElementById("band").value, scale = document.getElementById("scale").value;
  charts.forEach((chart, place) => {
    const box = document.getElementById(`chart-${place}`);
    const first = !box.data;
    const config = { responsive: true, displaylogo: false, modeBarButtonsToRemove: ["lasso2d", "select2d"] };
    Plotly.react(box, traces(chart, band), layout(chart, scale), config);
    if (!first) return;
    const toggle = (event) => {
      const name = event.data[event.curveNumber].series, off = hidden.get(chart);
      if (off.has(name)) off.delete(name); else off.add(name);
      draw();
      return false;
    };
    const alone = (event) => {
      const name = event.data[event.curveNumber].series, off = hidden.get(chart), others = chart.series.filter((s) => s.name !== name);
      const was = others.every((s) => off.has(s.name));
      off.clear();
      if (!was) others.forEach((s) => off.add(s.name));
      draw();
      return false;
    };
    box.on("plotly_legendclick", toggle);
    box.on("plotly_legenddoubleclick", alone);
  });
}

async function unpack(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
}

async function start() {
  const element = document.createElement("script");
  element.textContent = await unpack(document.getElementById("plotly").textContent);
  document.head.append(element);
  document.getElementById("static").hidden = true;
  document.getElementById("interactive").hidden = false;
  draw();
  for (const name of ["band", "scale"]) document.getElementById(name).addEventListener("change", draw);
  document.getElementById("all").addEventListener("click", () => { hidden.forEach((off) => off.clear()); draw(); });
  document.getElementById("main").addEventListener("click", () => {
    hidden.forEach((off, chart) => { off.clear(); chart.series.forEach((s) => s.strong || off.add(s.name)); });
    draw();
  });
  dark.addEventListener("change", draw);
  let width = window.innerWidth;
  window.addEventListener("resize", () => {
    if ((width < 700) !== (window.innerWidth < 700)) draw();
    width = window.innerWidth;
  });
}

function sortable(table) {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
  heads.forEach((head, place) => head.firstChild.addEventListener("click", () => {
    const up = head.getAttribute("aria-sort") !== "ascending";
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const key = (row) => row.cells[place].dataset.key ?? row.cells[place].textContent;
    const empty = (row) => row.cells[place].textContent === "";
    const order = (a, b) => (isNaN(key(a)) || isNaN(key(b)) ? key(a).localeCompare(key(b)) : key(a) - key(b));
    const rows = [...body.rows].sort((a, b) => empty(a) - empty(b) || (up ? 1 : -1) * order(a, b));
    body.append(...rows);
  }));
}

document.querySelectorAll("table.sortable").forEach(sortable);
if (typeof DecompressionStream === "function") start();
