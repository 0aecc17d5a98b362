// The screen for two minutes: is it going well, and when to stop?

import { get, post } from "./api.js";
import { bars, curve } from "./charts.js";
import { count, h, mark, percent, say, seldom } from "./dom.js";
import { Cloud } from "./map.js";

const REST = 5000;

export function open(main, app) {
  let open = true;
  let cloud = null;
  const body = h("div.screen.progress", {});
  main.replaceChildren(body);
  const draw = async () => {
    let found;
    try {
      found = await get("/progress");
    } catch (error) {
      return say(error.message || "The server does not answer.", { kind: "bad" });
    }
    if (!open) return;
    const before = body.scrollTop, focused = document.activeElement;
    cloud ??= new Cloud(app);
    body.replaceChildren(...parts(found, app, cloud));
    body.scrollTop = before;
    if (focused?.isConnected) focused.focus({ preventScroll: true });
  };
  const again = seldom(REST, () => open && draw());
  const heard = (pulse, before) => {
    if (pulse.model !== before.model || pulse.training !== before.training) draw();
    else if (pulse.labels !== before.labels) again();
  };
  app.listeners.add(heard);
  draw();
  return () => {
    open = false;
    app.listeners.delete(heard);
    cloud?.close();
  };
}

function parts(found, app, cloud) {
  const { advice, training } = found;
  const measured = found.curve.filter((point) => point.value !== null);
  const share = found.metric === "accuracy" || found.metric === "balanced_accuracy";
  const metric = { r2: "R²", rmse: "RMSE", mae: "MAE", auroc: "AUROC", macro_f1: "macro F1" }[found.metric] ?? found.metric.replaceAll("_", " ");
  const lowerIsBetter = ["rmse", "mae", "log_loss"].includes(found.metric);
  const last = measured[measured.length - 1];
  const crossed = found.curve.some((point) => point.by === "cv");
  const half = last && last.low !== null ? (last.high - last.low) / 2 : null;
  const figure = (name, value, more) => h("div.figure", {}, h("dt", {}, name), h("dd", {}, value, more && h("span.quiet", {}, ` ${more}`)));
  const shown = (value) => (share ? percent(value) : value.toFixed(2));
  const next = advice.gain && last && !lowerIsBetter ? { x: last.labels + training.batch, y: last.value + advice.gain.expected, low: last.value + advice.gain.low, high: last.value + advice.gain.high } : null;
  return [
    h("h1", {}, advice.sentence),
    advice.reasons.length > 0 && h("ul.reasons", {}, advice.reasons.map((reason) => h("li", {}, reason))),
    found.comparison && h("p", {}, found.comparison),
    h("dl.figures", {},
      figure("labels", found.labels.toLocaleString("en"), found.budget ? `of ${found.budget.toLocaleString("en")}` : `of ${found.samples.toLocaleString("en")} samples`),
      last && figure(metric, shown(last.value), `${half === null ? "" : `± ${share ? Math.round(100 * half) : half.toFixed(2)}, `}${last.evaluated_on} ${crossed ? "cross-validated" : "evaluated"}`),
      figure("pace", found.per_minute === null ? "–" : found.per_minute.toFixed(1), "labels a minute"),
      figure("time left", found.minutes_left === null ? "–" : hours(found.minutes_left), found.budget ? "for the budget" : "set a budget"),
      figure("training", trainingWords(training, app), training.state === "running" ? "" : `new answers, due at ${training.batch}`),
      figure("set aside", found.skipped.toLocaleString("en"), "skipped")),
    app.about.me.role === "owner" && h("p", {}, h("button.plain", { type: "button", onclick: () => post("/training", {}).then((done) => say(done.started ? "Training started." : "Training is already running."), (error) => say(error.message, { kind: "bad" })) }, "Train now")),
    training.error && h("p.trouble", {}, `The last training failed: ${training.error}`),
    h("div.columns", {},
      h("section", {}, h("h2", {}, `${metric[0].toUpperCase()}${metric.slice(1)} ${crossed ? "by cross-validation on the labels that were chosen, which are not a random sample" : "on evaluation samples"}`),
        measured.length ? curve({ points: measured.map((point) => ({ x: point.labels, y: point.value, low: point.low, high: point.high, constant: point.constant })), next, xName: "training labels", yName: metric, constantName: app.about.task === "classification" ? "most common class" : "mean", share })
          : h("p.quiet", {}, crossed ? "No model has been measured yet; cross-validation needs ten labels." : `No model has been measured yet; ${found.evaluate[0]} of ${found.evaluate[1]} evaluation samples are labelled.`)),
      app.about.task === "classification" && h("section", {}, h("h2", {}, "Classes"), classes(found, app)),
      h("section.wide", {}, h("h2", {}, "Map of the pool"), cloud.element),
      h("section", {}, h("h2", {}, "People"), people(found)),
      h("section", {}, h("h2", {}, "Agreement"), agreement(found))),
    found.notes.length > 0 && h("section", {}, h("h2", {}, "Notes of the last query"), h("ul.reasons", {}, found.notes.map((note) => h("li", {}, note)))),
  ].filter(Boolean);
}

function trainingWords(training, app) {
  if (training.state === "running") return [app.pulse.stage ?? "under way", app.pulse.share === null ? null : `${Math.round(100 * app.pulse.share)} %`].filter(Boolean).join(", ");
  return training.waiting.toLocaleString("en");
}

function classes(found, app) {
  const known = app.about.classes.map(({ text }) => text);
  const names = [...new Set([...known, ...Object.keys(found.classes)])];
  const rows = names.map((text) => ({ text, n: found.classes[text] ?? 0, mark: mark(known.indexOf(text)) }));
  if (rows.length > 12) rows.sort((one, other) => other.n - one.n);
  return bars(rows.slice(0, 40));
}

function people(found) {
  if (!found.people.length) return h("p.quiet", {}, "Nobody has answered yet.");
  return h("table", {}, h("thead", {}, h("tr", {}, ["who", "answers", "a minute"].map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, found.people.map((one) => h("tr", {}, h("td", {}, one.annotator), h("td.n", {}, one.answers.toLocaleString("en")), h("td.n", {}, one.per_minute?.toFixed(1) ?? "–")))));
}

function agreement(found) {
  if (!found.agreements.length) return h("p.quiet", {}, "No sample has been labelled by two people yet.");
  return h("div", {}, h("table", {}, h("thead", {}, h("tr", {}, ["", "", "both", "same", "kappa"].map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, found.agreements.slice(0, 20).map((pair) => h("tr", {}, h("td", {}, pair.one), h("td", {}, pair.other), h("td.n", {}, pair.samples), h("td.n", {}, percent(pair.same)), h("td.n", {}, pair.kappa === null ? "–" : pair.kappa.toFixed(2)))))),
  found.disagreements > 0 && h("p", {}, h("a", { href: "/review", data: { go: "" } }, `${count(found.disagreements, "sample")} people disagree on`)));
}

const hours = (minutes) => (minutes < 90 ? `${Math.round(minutes)} min` : `${(minutes / 60).toFixed(1)} h`);
