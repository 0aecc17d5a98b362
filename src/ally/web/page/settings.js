// Keys, guesses, contrast; for the owner: classes, budget, links, and the labels as a file.

import { call, get, post } from "./api.js";
import { h, mark, say } from "./dom.js";
import { ACTIONS, keyName } from "./keys.js";
import { choice, choose } from "./kept.js";

export function open(main, app) {
  const body = h("div.screen.settings", {});
  main.replaceChildren(body);
  const draw = () => body.replaceChildren(...[h("h1", {}, "Settings"), yours(app, draw), keys(app, draw), app.about.me.role === "owner" && owner(app), app.about.shared && app.about.me.role === "owner" && links(app)].filter(Boolean));
  draw();
  return () => {};
}

function yours(app, draw) {
  const theme = choice("theme", "auto");
  const pick = (name, text) => h("label.option", {}, h("input", { type: "radio", name: "theme", checked: theme === name, onchange: () => {
    choose("theme", name);
    if (name === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = name;
  } }), text);
  return h("section", {}, h("h2", {}, "For you"),
    h("p", {}, h("span.quiet", {}, "You label as "), h("strong", {}, app.about.me.annotator)),
    h("label.option", {}, h("input", { type: "checkbox", checked: app.label.guesses, onchange: (event) => {
      app.label.guesses = event.target.checked;
      choose("guesses", event.target.checked);
    } }), "Show the model's guess (it can bias you; held-out samples never show one)"),
    h("fieldset", {}, h("legend", {}, "Colours"), pick("auto", "as the system"), pick("light", "light"), pick("dark", "dark"), pick("contrast", "high contrast")));
}

function keys(app, draw) {
  const clashes = app.keys.clashes();
  const field = (name, text, key, sign) => h("label.key", {}, sign, h("span", {}, text), h("input", {
    type: "text", value: keyName(key), "aria-label": `Key for ${text}`, readonly: true, size: "4",
    onkeydown: (event) => {
      if (event.key === "Tab" || event.key === "Shift") return;
      event.preventDefault();
      app.keys.choose(name, event.key === "Escape" ? null : event.key.length === 1 ? event.key.toLowerCase() : event.key);
      draw();
      document.querySelector(`[aria-label="Key for ${CSS.escape(text)}"]`)?.focus();
    },
  }));
  return h("section", {}, h("h2", {}, "Keys"), h("p.quiet", {}, "Select a field and press a key. Esc restores the default. Numpad digits count as digits."),
    clashes.length > 0 && h("p.trouble", { role: "alert" }, `One key has two meanings: ${clashes.join("; ")}`),
    h("div.keys", {}, Object.entries(ACTIONS).map(([action, { text }]) => field(`action ${action}`, text, app.keys.names[action], null)),
      !app.keys.typing && app.about.classes.map(({ text }, index) => field(`class ${text}`, text, app.keys.classKeys[index], mark(index)))));
}

function owner(app) {
  const budget = h("input.plain-input", { type: "number", min: "1", value: app.about.budget ?? "", id: "budget" });
  const added = h("input.plain-input", { type: "text", id: "added", placeholder: "a new class" });
  const change = async (changes, words) => {
    try {
      await call("PATCH", "/settings", changes);
      Object.assign(app.about, await get("/campaign"));
      app.keys.classes = app.about.classes;
      app.keys.set();
      say(words);
    } catch (error) {
      say(error.message, { kind: "bad" });
    }
  };
  return h("section", {}, h("h2", {}, "For the owner"),
    h("p", {}, h("label", { for: "budget" }, "Total label budget "), budget, " ", h("button.plain", { type: "button", onclick: () => change({ budget: budget.value ? Number(budget.value) : null }, "Budget changed.") }, "Set")),
    app.about.task === "classification" && !app.about.open_classes && h("p", {}, h("label", { for: "added" }, "Another class "), added, " ", h("button.plain", { type: "button", onclick: () => {
      const text = added.value.trim();
      const numbers = app.about.classes.every(({ label }) => typeof label === "number");
      if (text) change({ classes: [...app.about.classes.map(({ label }) => label), numbers && /^-?\d+$/.test(text) ? Number(text) : text] }, `${text} is now a class.`);
    } }, "Add")),
    h("p", {}, h("a", { href: "/api/v1/export?format=csv", download: "labels.csv" }, "Labels as CSV"), " · ", h("a", { href: "/api/v1/export?format=jsonl", download: "labels.jsonl" }, "as JSON lines")));
}

function links(app) {
  const name = h("input.plain-input", { type: "text", id: "invited", placeholder: "name" });
  const made = h("p", { role: "status" });
  const list = h("ul.rows");
  const draw = ({ links }) => list.replaceChildren(...links.map((one) => h("li", {}, h("strong", {}, one.annotator), h("span.quiet", {}, one.role === "owner" ? " owner" : one.state === "in" ? " has joined" : " has not joined yet"),
    one.role !== "owner" && h("button.plain", { type: "button", onclick: () => post("/links/end", { annotator: one.annotator }).then(draw) }, "End access"))));
  get("/links").then(draw, () => {});
  return h("section", {}, h("h2", {}, "People"),
    h("p", {}, h("label", { for: "invited" }, "Invite "), name, " ", h("button.plain", { type: "button", onclick: async () => {
      try {
        const link = await post("/links", { annotator: name.value.trim() });
        made.replaceChildren(h("span.quiet", {}, `For ${link.annotator}, works once: `), h("code", {}, `${location.origin}/#${link.secret}`));
        draw(await get("/links"));
      } catch (error) {
        say(error.message, { kind: "bad" });
      }
    } }, "Make a link")), made, list);
}
