// Labels to look at again: likely wrong ones, those on which people differ, one's own last ones, and remarks.

import { get } from "./api.js";
import { h, mark, percent, say } from "./dom.js";
import { small } from "./small.js";

export function open(main, app) {
  let open = true;
  const body = h("div.screen.review", {});
  main.replaceChildren(body);
  const draw = async () => {
    let found, mine;
    try {
      [found, mine] = await Promise.all([get("/review"), get("/answers?n=40")]);
    } catch (error) {
      return say(error.message || "The server does not answer.", { kind: "bad" });
    }
    if (!open) return;
    body.replaceChildren(
      h("h1", {}, "Review"),
      section("Likely wrong", found.suspects.length ? "Labels the model finds hardest to fit. Keep the ones that are right." : "No suspicious labels yet: this needs ten labels and a training.",
        found.suspects.map((one) => row(app, one.id, [
          h("p", {}, chip(app, one.label, one.text), h("span.quiet", {}, ` by ${one.annotator}`)),
          one.predicted !== null && h("p", {}, h("span.quiet", {}, "the model says "), chip(app, one.predicted, one.predicted_text), one.probability !== null && h("span.quiet", {}, ` ${percent(one.probability)}`)),
        ], one.label))),
      section("Disagreements", found.disagreements.length ? "The same sample, different labels." : "No disagreements.",
        found.disagreements.map((one) => row(app, one.id, one.opinions.map((said) => h("p", {}, chip(app, said.label, said.text), h("span.quiet", {}, ` ${said.annotator}`))), null))),
      section("Your last answers", mine.answers.length ? "" : "You have not answered yet.",
        mine.answers.map((one) => row(app, one.id, [h("p", {}, chip(app, one.label, one.text))], one.label, one.number))),
      found.notes.length > 0 && section("Notes", "", found.notes.map((one) => row(app, one.id, [h("p", {}, one.text), h("p.quiet", {}, one.annotator)], null))));
  };
  draw();
  return () => (open = false);
}

const section = (name, words, rows) => h("section", {}, h("h2", {}, name), words && h("p.quiet", {}, words), h("ul.rows", {}, rows));

function chip(app, label, text) {
  const index = app.about.classes.findIndex((one) => one.label === label);
  return h("span.chip", {}, index >= 0 ? mark(index) : null, text);
}

// A sample with what is said about it, and a choice of another label.
function row(app, id, lines, label, number) {
  const done = h("span.quiet", { role: "status" });
  const tell = (value) => {
    const body = { id, label: value };
    if (number) body.expects = number;
    const key = app.outbox.answer(body, { id });
    const heard = ({ detail }) => {
      if (detail.entry.key !== key) return;
      app.outbox.removeEventListener("outcome", heard);
      done.textContent = detail.outcome.state === "recorded" ? `now ${value}` : detail.outcome.detail;
    };
    done.textContent = "…";
    app.outbox.addEventListener("outcome", heard);
  };
  const choose = app.about.task === "regression"
    ? h("input.plain-input", { type: "text", inputmode: "decimal", "aria-label": `A number for ${id}`, placeholder: "number", onkeydown: (event) => event.key === "Enter" && Number.isFinite(Number(event.target.value)) && event.target.value.trim() && tell(Number(event.target.value)) })
    : h("select.plain-input", { "aria-label": `A label for ${id}`, onchange: (event) => event.target.value !== "" && tell(app.about.classes[Number(event.target.value)].label) },
        h("option", { value: "" }, "change to …"), app.about.classes.map((one, index) => h("option", { value: index }, one.text)));
  const keep = label !== null && label !== undefined && number === undefined ? h("button.plain", { type: "button", onclick: () => tell(label) }, "Keep") : null;
  return h("li.row", {}, small(app, id), h("div", {}, h("p.quiet.id", {}, id), lines, h("div.choose", {}, keep, choose, done)));
}
