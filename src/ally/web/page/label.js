// The screen for two hours: one sample, its classes, nothing to scroll.

import { get, imageOf } from "./api.js";
import { h, mark, percent, say } from "./dom.js";
import { ACTIONS, MANY, keyName } from "./keys.js";
import { choice, choose } from "./kept.js";
import { prepared } from "./queue.js";
import { markWords, wordsOf } from "./sample.js";

const STRIP = 16;
const SEEN = 200;

export class Label {
  constructor(app) {
    this.app = app;
    this.history = [];
    this.looking = null; // position in the history of a sample that is looked at again
    this.texts = [];
    this.guesses = choice("guesses", true);
    this.finder = "";
    this.far = null;
    app.outbox.addEventListener("outcome", ({ detail }) => this.#outcome(detail));
    app.outbox.addEventListener("refused", ({ detail }) => say(detail, { kind: "bad" }));
    app.queue.addEventListener("first", () => this.visible && this.show());
  }

  // What was answered before this page was opened: undo and back reach it.
  async start() {
    const { answers } = await get(`/answers?n=${SEEN}`);
    const mine = new Set(this.history.map((one) => one.id));
    const before = answers.filter((one) => !mine.has(one.id)).reverse();
    this.history = [...before.map((one) => ({ id: one.id, label: one.label, skip: one.skip, number: one.number, key: null, note: one.note })), ...this.history];
    if (this.visible) this.#drawStrip();
  }

  open(main) {
    const { app } = this;
    this.visible = true;
    this.stage = h("section.stage", { "aria-label": "Sample" });
    this.tools = h("div.tools", {},
      h("button", { type: "button", "aria-label": "Zoom out", title: "Zoom out (-)", onclick: () => this.#viewer()?.zoomBy(1 / 1.5) }, "−"),
      h("button", { type: "button", "aria-label": "Zoom in", title: "Zoom in (+)", onclick: () => this.#viewer()?.zoomBy(1.5) }, "+"),
      h("button", { type: "button", "aria-label": "Darker", title: "Darker ([)", onclick: () => this.#viewer()?.brighten(-0.2) }, "☾"),
      h("button", { type: "button", "aria-label": "Brighter", title: "Brighter (])", onclick: () => this.#viewer()?.brighten(0.2) }, "☀"),
      h("button", { type: "button", "aria-label": "Reset", title: "Reset (double click)", onclick: () => this.#viewer()?.reset() }, "⟲"));
    this.strip = h("ol.strip", { "aria-label": "Your last answers" });
    this.panel = app.about.task === "regression" ? this.#numberPanel() : this.#classPanel();
    this.actions = h("div.actions", { role: "group", "aria-label": "Actions" }, ["skip", "undo", "back", "note", "help"].map((action) =>
      h("button.action", { type: "button", onclick: () => this.act(action), data: { action } },
        h("kbd", {}, keyName(app.keys.names[action])), h("span", {}, ACTIONS[action].text))));
    this.noteField = h("input.note", { type: "text", maxlength: "2000", placeholder: "A note, then Enter", "aria-label": "Note", hidden: true, onkeydown: (event) => this.#noteKey(event) });
    this.noted = h("p.noted.quiet", { "aria-label": "Your note" });
    this.why = h("div.why", { "aria-label": "Why this one" });
    this.help = h("div.help", { hidden: true });
    main.replaceChildren(h("div.label", { data: { widget: app.about.widget } },
      h("div.work", {}, this.stage, this.tools, this.strip),
      h("aside.side", {}, this.panel, this.noted, this.noteField, this.actions, this.help, this.why)));
    this.#drawStrip();
    this.show();
    this.listener = (event) => this.#key(event);
    addEventListener("keydown", this.listener);
    return () => {
      this.visible = false;
      removeEventListener("keydown", this.listener);
    };
  }

  // The sample on screen: one that is looked at again, or the first of the queue.
  get item() {
    return this.looking !== null ? this.again : this.app.queue.current;
  }

  #viewer() {
    return this.item?.built?.value?.viewer;
  }

  show() {
    const item = this.item;
    this.far = null;
    if (!item) return this.#showNothing();
    item.built ??= prepared(item.id);
    if (item.built.value) this.#place(item);
    else {
      // A still outline of the right size, exchanged for the sample where it is.
      this.stage.replaceChildren(h("div.sample.outline", { "aria-busy": "true", "aria-label": "Loading" }));
      item.built.promise.then(() => this.visible && this.item === item && this.#place(item));
    }
    this.#drawSide(item);
  }

  #place(item) {
    const { content, element, viewer } = item.built.value;
    viewer?.reset();
    this.stage.replaceChildren(element);
    this.stage.dataset.id = item.id;
    if (element.scrollTop) element.scrollTop = 0;
    this.tools.hidden = !viewer;
    if (content.text) this.#markShared(item, content, element);
  }

  #showNothing() {
    const { queue } = this.app;
    delete this.stage.dataset.id;
    this.tools.hidden = true;
    const words = queue.ended
      ? [h("p", {}, h("strong", {}, "Nothing left to label right now.")), h("p", {}, queue.ended), h("p", {}, h("a", { href: "/progress", data: { go: "" } }, "See progress"))]
      : queue.trouble
        ? [h("p", {}, queue.trouble === "offline" ? "The server does not answer. This page will retry." : queue.trouble)]
        : [];
    this.stage.replaceChildren(words.length ? h("div.sample.empty", {}, words) : h("div.sample.outline", { "aria-busy": "true", "aria-label": "Loading" }));
    this.why.replaceChildren();
    this.#drawGuess(null, null);
  }

  // Answering

  answer(label, skip = false) {
    const item = this.item;
    if (!item) return;
    const started = performance.now();
    const body = { id: item.id };
    if (skip) body.skip = true;
    else body.label = label;
    if (item.query) body.query = item.query;
    if (item.expects !== undefined) body.expects = item.expects;
    const key = this.app.outbox.answer(body, { id: item.id });
    const given = { id: item.id, label: skip ? null : label, skip, key, number: null, note: this.#noteOf(item), item };
    if (this.looking !== null) {
      this.history[this.looking] = given;
      this.looking = null;
    } else {
      this.app.queue.take();
      this.history.push(given);
      if (this.history.length > SEEN) this.history.shift();
    }
    this.show();
    this.#drawStrip();
    this.#timed(started);
  }

  // From the key to the next sample on screen, for whoever measures.
  #timed(started) {
    requestAnimationFrame(() => {
      const channel = new MessageChannel();
      channel.port1.onmessage = () => performance.measure("ally answer", { start: started, end: performance.now() });
      channel.port2.postMessage(0);
    });
  }

  #outcome({ entry, outcome }) {
    const given = this.history.find((one) => one.key === entry.key);
    if (outcome.state === "recorded") {
      if (given) {
        given.number = outcome.number;
        this.strip?.querySelector(`[data-key="${entry.key}"]`)?.setAttribute("data-state", "saved");
      }
      if (this.looking !== null && this.again?.given === given && given) this.again.expects = outcome.number;
      if (outcome.detail) say(outcome.detail, { choices: given ? [["Change it", () => this.look(this.history.indexOf(given))]] : [] });
      return;
    }
    if (given) this.history.splice(this.history.indexOf(given), 1);
    if (this.looking !== null) this.looking = null;
    this.#drawStrip();
    const choices = outcome.state === "conflict" ? [["Record mine too", () => {
      const { expects, ...body } = entry.body;
      this.app.outbox.answer(body, entry.shown);
    }]] : [];
    say(outcome.detail, { choices, kind: "bad", stays: true });
  }

  undo() {
    const given = this.history.pop();
    if (!given) return say("You have no answer to undo.");
    this.looking = null;
    this.app.outbox.undo(given.key, given.number);
    const item = { id: given.id, asked: given.item?.asked ?? null, query: given.item?.query ?? null, built: given.item?.built ?? null, old: given, expects: null };
    this.app.queue.put(item);
    this.show();
    this.#drawStrip();
  }

  // Looks at an earlier answer again; answering changes it, Escape or the end of the strip returns.
  look(position) {
    if (position < 0 || position >= this.history.length) {
      this.looking = null;
      this.show();
      this.#drawStrip();
      return;
    }
    const given = this.history[position];
    this.looking = position;
    this.again = { id: given.id, asked: given.item?.asked ?? null, query: null, built: given.item?.built ?? null, old: given, given };
    if (given.number) this.again.expects = given.number;
    this.show();
    this.#drawStrip();
  }

  act(action) {
    const viewer = this.#viewer();
    if (action === "skip") this.answer(null, true);
    else if (action === "undo") this.undo();
    else if (action === "back") this.look(this.looking === null ? this.history.length - 1 : Math.max(0, this.looking - 1));
    else if (action === "note") this.#openNote();
    else if (action === "guess") this.#toggleGuess();
    else if (action === "help") this.#toggleHelp();
    else if (action === "closer") viewer?.zoomBy(1.5);
    else if (action === "wider") viewer?.zoomBy(1 / 1.5);
    else if (action === "brighter") viewer?.brighten(0.2);
    else if (action === "darker") viewer?.brighten(-0.2);
  }

  #key(event) {
    const { keys, about } = this.app;
    const field = event.target.closest?.("input, textarea, select");
    if (field === this.noteField) return;
    if (event.key === "Escape") {
      if (!this.help.hidden) this.#toggleHelp();
      else if (this.looking !== null) this.look(-1);
      else if (this.finderField) this.#find("");
      return;
    }
    const found = keys.read(event);
    if (field === this.numberField && field) {
      const editing = ["Backspace", "Delete", "ArrowLeft", "+", "-"].includes(event.key) || event.code.startsWith("Numpad");
      if (!found?.action || (editing && (field.value || event.key.length === 1))) return;
    } else if (field === this.finderField && field) {
      if (!found?.action || (field.value && ["Backspace", "Delete", "ArrowLeft"].includes(event.key))) return;
    } else if (field) return;
    if ((event.key === "Enter" || event.key === " ") && event.target.closest?.("button, a")) return;
    if (event.repeat && !["closer", "wider", "brighter", "darker"].includes(found?.action)) return event.preventDefault();
    if (found?.label !== undefined) {
      event.preventDefault();
      this.answer(about.classes[found.label].label);
    } else if (found) {
      event.preventDefault();
      this.act(found.action);
    } else if (this.finderField && event.key.length === 1 && !event.ctrlKey && !event.metaKey && !event.altKey) {
      this.finderField.focus(); // the letter goes to the field
    }
  }

  // Classes

  #classPanel() {
    const { about, keys } = this.app;
    this.buttons = about.classes.map(({ label, text }, index) =>
      h("button.class", { type: "button", title: text, onclick: () => this.answer(label) },
        h("kbd", {}, keyName(keys.classKeys[index])), mark(index), h("span.name", {}, text), h("span.guess")));
    this.list = h("div.classes", { role: "group", "aria-label": "Classes" }, this.buttons);
    const parts = [this.list];
    if (about.classes.length > MANY || about.open_classes) {
      this.finderField = h("input.finder", {
        type: "text", placeholder: about.open_classes ? "Type a class, then Enter" : "Type to find, then Enter", "aria-label": "Find a class",
        autocomplete: "off", spellcheck: "false", oninput: () => this.#find(this.finderField.value), onkeydown: (event) => this.#finderKey(event),
      });
      parts.unshift(this.finderField);
    } else this.finderField = null;
    return h("div.panel", {}, parts);
  }

  #find(words) {
    if (this.finderField.value !== words) this.finderField.value = words;
    const wanted = words.trim().toLowerCase();
    const texts = this.app.about.classes.map(({ text }) => text.toLowerCase());
    const rank = (text) => (!wanted || text === wanted ? 0 : text.startsWith(wanted) ? 1 : text.includes(wanted) ? 2 : 3);
    const order = texts.map((text, index) => [rank(text), index]).sort(([a, i], [b, j]) => a - b || i - j);
    this.found = order.filter(([place]) => place < 3).map(([, index]) => index);
    this.list.replaceChildren(...this.found.map((index) => this.buttons[index]));
    this.pick = 0;
    this.buttons.forEach((button, index) => button.classList.toggle("picked", wanted !== "" && index === this.found[0]));
  }

  #finderKey(event) {
    const { about } = this.app;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      const last = (this.found ?? []).length - 1;
      this.pick = Math.min(last, Math.max(0, (this.pick ?? 0) + (event.key === "ArrowDown" ? 1 : -1)));
      this.buttons.forEach((button, index) => button.classList.toggle("picked", index === this.found[this.pick]));
      this.buttons[this.found[this.pick]]?.scrollIntoView({ block: "nearest" });
    }
    if (event.key !== "Enter") return;
    event.preventDefault();
    const words = this.finderField.value.trim();
    if (!words || event.repeat) return;
    const index = this.found?.[this.pick ?? 0];
    const exact = about.classes.findIndex(({ text }) => text.toLowerCase() === words.toLowerCase());
    let label;
    if (exact >= 0) label = about.classes[exact].label;
    else if (about.open_classes && !(this.pick > 0)) {
      label = words;
      this.app.addClass(words);
    } else if (index !== undefined) label = about.classes[index].label;
    else return say(`No class is called ${words}.`);
    this.#find("");
    this.answer(label);
  }

  redraw() {
    if (!this.visible || this.app.about.task === "regression") return;
    const fresh = this.#classPanel();
    this.panel.replaceWith(fresh);
    this.panel = fresh;
    if (this.item) this.#drawSide(this.item);
    this.finderField?.focus();
  }

  // Numbers

  #numberPanel() {
    const range = this.app.about.numbers;
    const spread = range ? range.high - range.low || Math.abs(range.middle) || 1 : 1;
    this.step = 10 ** Math.floor(Math.log10(spread / 10));
    this.numberField = h("input.number", { type: "text", inputmode: "decimal", autocomplete: "off", "aria-label": "The number", onkeydown: (event) => this.#numberKey(event) });
    this.range = h("p.quiet.range", { id: "range" }, range ? `${shownNumber(range.least)} to ${shownNumber(range.most)} so far` : "no number yet");
    this.numberField.setAttribute("aria-describedby", "range");
    this.recent = h("div.recent", { role: "group", "aria-label": "Last values" });
    this.guessLine = h("p.quiet.guessed");
    return h("div.panel", {},
      h("label.field", {}, h("span", {}, "Number"), this.numberField), this.range, this.guessLine,
      h("p.quiet.hint", {}, h("kbd", {}, "↑"), h("kbd", {}, "↓"), ` by ${shownNumber(this.step)}, `, h("kbd", {}, "⏎"), " answers"), this.recent,
      h("button.answer", { type: "button", onclick: () => this.#tellNumber() }, "Answer"));
  }

  #numberKey(event) {
    const steps = { ArrowUp: 1, ArrowDown: -1, PageUp: 10, PageDown: -10 }[event.key];
    if (steps) {
      event.preventDefault();
      const now = readNumber(this.numberField.value) ?? this.app.about.numbers?.middle ?? 0;
      this.numberField.value = String(Number((now + steps * this.step).toPrecision(12)));
    } else if (event.key === "Enter" && !event.repeat) {
      event.preventDefault();
      this.#tellNumber();
    }
  }

  #tellNumber() {
    const words = this.numberField.value;
    const number = readNumber(words);
    if (number === null) {
      this.range.textContent = words.trim() ? `${words} is not a number; write it like 12.5` : "write a number like 12.5";
      this.range.dataset.bad = "";
      return;
    }
    const range = this.app.about.numbers;
    const reach = range ? 5 * (range.high - range.low) : 0;
    if (reach && this.far !== number && (number < range.low - reach || number > range.high + reach)) {
      this.far = number;
      this.range.textContent = `${shownNumber(number)} is far from the others (${shownNumber(range.least)} to ${shownNumber(range.most)}); Enter again keeps it`;
      this.range.dataset.bad = "";
      return;
    }
    delete this.range.dataset.bad;
    if (range) {
      range.least = Math.min(range.least, number);
      range.most = Math.max(range.most, number);
      this.range.textContent = `${shownNumber(range.least)} to ${shownNumber(range.most)} so far`;
    }
    this.lasts = [number, ...(this.lasts ?? []).filter((other) => other !== number)].slice(0, 5);
    this.recent.replaceChildren(...this.lasts.map((value) => h("button", { type: "button", onclick: () => { this.numberField.value = String(value); this.#tellNumber(); } }, shownNumber(value))));
    this.answer(number);
  }

  // Beside the sample

  #drawSide(item) {
    const guess = this.guesses && !item.old && !["evaluate", "validate"].includes(item.asked?.kind) ? item.asked?.guess : null;
    this.#drawGuess(guess, item.old);
    this.noteField.value = this.noted.textContent = this.#noteOf(item);
    this.noteField.hidden = true;
    this.#drawWhy(item);
    if (this.numberField) {
      this.numberField.value = item.old && !item.old.skip ? String(item.old.label) : "";
      if (!matchMedia("(pointer: coarse)").matches) this.numberField.focus({ preventScroll: true });
      this.numberField.select();
    }
  }

  #drawGuess(guess, old) {
    if (this.numberField) {
      this.guessLine.textContent = guess ? `guess ${shownNumber(guess.label)}${guess.beyond ? ", beyond all numbers so far" : ""}` : old && !old.skip ? `was ${shownNumber(old.label)}` : "";
      return;
    }
    this.app.about.classes.forEach(({ label, text }, index) => {
      const button = this.buttons[index];
      const guessed = guess !== null && guess !== undefined && guess.text === text;
      button.classList.toggle("old", Boolean(old) && !old.skip && old.label === label);
      const words = guessed ? `◂ ${guess.probability === null ? "" : percent(guess.probability)}` : old && old.label === label ? "was" : "";
      const place = button.lastChild;
      if (place.textContent !== words) place.textContent = words;
      place.setAttribute("aria-label", guessed ? `guessed, ${percent(guess.probability ?? 0)}` : words);
    });
  }

  #drawWhy(item) {
    const parts = [];
    if (item.old) parts.push(h("p", {}, item.old.skip ? "You skipped this one." : ["You said ", h("strong", {}, this.#text(item.old.label)), "."], this.looking !== null ? " Answer to change it, Esc to go on." : " Answer again."));
    if (item.asked?.why) parts.push(h("p", {}, h("span.quiet", {}, "why: "), item.asked.why.sentence));
    const near = item.asked?.why.nearest ?? [];
    if (near.length && this.guesses) parts.push(h("div.near", {}, h("p.quiet", {}, "nearest labelled"), near.map((id) => this.#nearest(id))));
    this.why.replaceChildren(...parts);
  }

  // Its place is kept from the first moment: what comes later moves nothing.
  #nearest(id) {
    const caption = h("figcaption");
    const line = h("figure", {}, caption);
    this.app.labelOf(id).then((text) => {
      const index = this.app.about.classes.findIndex((one) => one.text === text);
      caption.replaceChildren(...[index >= 0 && mark(index), text ?? id].filter(Boolean));
    });
    if (this.app.about.widget === "image") line.prepend(h("img", { src: imageOf(id, "thumb"), alt: `labelled sample ${id}`, width: "72", height: "72", loading: "eager" }));
    if (this.app.about.widget === "text") {
      const snippet = line.appendChild(h("span.snippet"));
      get(`/samples?${new URLSearchParams({ id })}`).then((found) => snippet.replaceChildren((found.text ?? "").slice(0, 90), (found.text ?? "").length > 90 ? "…" : ""), () => {});
    }
    return line;
  }

  // Words that this text shares with the nearest labelled one, and that are not in most texts anyway.
  async #markShared(item, content, element) {
    const words = wordsOf(content.text);
    if (!this.texts.some((text) => text.id === item.id)) this.texts = [...this.texts, { id: item.id, words }].slice(-50);
    const near = this.guesses ? item.asked?.why?.nearest?.[0] : null;
    if (!near) return markWords(null, new Set());
    const other = wordsOf((await get(`/samples?${new URLSearchParams({ id: near })}`).catch(() => null))?.text);
    if (this.item !== item) return;
    const common = (word) => this.texts.length > 4 && this.texts.filter((text) => text.words.has(word)).length > this.texts.length / 2;
    markWords(element, new Set([...words].filter((word) => other.has(word) && !common(word))));
  }

  #text(label) {
    return this.app.about.task === "regression" ? shownNumber(label) : String(label);
  }

  #drawStrip() {
    const from = Math.max(0, this.history.length - STRIP);
    const shown = this.history.slice(from);
    this.strip.replaceChildren(...shown.map((given, place) => {
      const position = from + place;
      const index = this.app.about.classes.findIndex(({ label }) => label === given.label);
      const text = given.skip ? "skipped" : this.#text(given.label);
      const inside = this.app.about.widget === "image" ? h("img", { src: imageOf(given.id, "thumb"), alt: "", width: "40", height: "40" }) : h("span.tick", {}, index >= 0 ? "" : text);
      return h("li", {}, h("button.past", {
        type: "button", title: `${given.id}: ${text}`, "aria-label": `${given.id}, ${text}, change`, "aria-current": this.looking === position ? "true" : undefined,
        onclick: () => this.look(position), data: { state: given.number ? "saved" : "waiting", key: given.key ?? "" },
      }, inside, given.skip ? h("span.mark", { "aria-hidden": "true" }, "–") : index >= 0 ? mark(index) : null));
    }));
    this.strip.scrollLeft = this.strip.scrollWidth;
  }

  // Notes, guesses, keys

  #openNote() {
    if (!this.item) return;
    this.noteField.hidden = false;
    this.noteField.focus();
  }

  #noteKey(event) {
    event.stopPropagation();
    if (event.key === "Escape") return this.#closeNote();
    if (event.key !== "Enter") return;
    const { item } = this;
    const text = this.noteField.value.trim();
    this.#closeNote();
    if (text === this.#noteOf(item)) return;
    this.app.outbox.note(item.id, text);
    item.note = text;
    if (item.old) item.old.note = text;
    this.noted.textContent = text;
    say(text ? "The note goes with the sample." : "Note removed.");
  }

  #noteOf(item) {
    return item.note ?? item.old?.note ?? "";
  }

  #closeNote() {
    this.noteField.hidden = true;
    this.noteField.blur();
  }

  #toggleGuess() {
    this.guesses = !this.guesses;
    choose("guesses", this.guesses);
    if (this.item) this.#drawSide(this.item);
    say(this.guesses ? "Guesses shown." : "Guesses hidden.");
  }

  #toggleHelp() {
    this.help.hidden = !this.help.hidden;
    if (this.help.hidden) return;
    const { keys } = this.app;
    this.help.replaceChildren(h("dl", {}, Object.entries(ACTIONS).map(([action, { text }]) => h("div", {}, h("dt", {}, h("kbd", {}, keyName(keys.names[action]))), h("dd", {}, text)))),
      h("p.quiet", {}, "Esc closes this. You can change keys under Settings."));
  }
}

const shownNumber = (value) => (typeof value === "number" ? value.toLocaleString("en", { maximumSignificantDigits: 6 }) : String(value));

// 12.5, 12,5, -3e2; null for anything else.
export function readNumber(words) {
  const plain = words.trim().replace(/^([-+]?\d+),(\d+)$/, "$1.$2");
  if (!/^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(plain)) return null;
  const number = Number(plain);
  return Number.isFinite(number) ? number : null;
}
