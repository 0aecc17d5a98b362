// The page: signs in, keeps what all screens share, and goes from one to the other.

import { get, listen, post } from "./api.js";
import { h, say } from "./dom.js";
import { Keys, MANY } from "./keys.js";
import { Unsent, choice, choose } from "./kept.js";
import { Label } from "./label.js";
import { Outbox } from "./outbox.js";
import { Queue } from "./queue.js";

const SCREENS = [
  ["/", "Label"],
  ["/grid", "Grid"],
  ["/progress", "Progress"],
  ["/review", "Review"],
  ["/settings", "Settings"],
];
const THEMES = ["auto", "light", "dark", "contrast"];
const main = document.getElementById("main");

class App {
  constructor(about) {
    this.about = about;
    this.pulse = { labels: about.labels, training: false, stage: null, share: null };
    this.labels = new Map();
    this.listeners = new Set();
    const many = about.classes.length > MANY || about.open_classes;
    this.keys = new Keys(about.classes, many);
  }

  async start() {
    const name = `${this.about.name} ${this.about.identity} ${this.about.me.annotator}`;
    this.outbox = new Outbox(await Unsent.open(name), name);
    this.queue = new Queue(name, this.outbox);
    this.label = new Label(this);
    this.#header();
    await this.outbox.load();
    this.outbox.addEventListener("change", () => this.#status());
    const started = this.queue.start();
    this.go(location.pathname, false);
    await Promise.all([started, this.label.start()]);
    this.source = listen((pulse) => this.#heard(pulse));
    this.source.addEventListener("error", () => this.#status());
    setInterval(() => this.queue.renew(), 30000);
    addEventListener("pagehide", () => this.queue.leave());
    addEventListener("pageshow", (event) => event.persisted && this.queue.renew(true));
  }

  #heard(pulse) {
    const before = this.pulse;
    this.pulse = pulse;
    this.#status();
    if (this.queue.model === null) this.queue.model = pulse.model;
    else if (pulse.model !== this.queue.model && pulse.model !== null) this.queue.exchange(pulse.model);
    if (this.queue.ended && pulse.last_answer !== before.last_answer) {
      this.queue.ended = null;
      this.queue.fill();
    }
    for (const tell of this.listeners) tell(pulse, before);
  }

  // A class that somebody made up; the server takes any where none are declared.
  addClass(text) {
    this.about.classes.push({ label: text, text });
    this.keys = new Keys(this.about.classes, true);
    this.label.redraw();
  }

  // The label that counts of a sample, for the line that says what is near.
  async labelOf(id) {
    const mine = this.label.history.findLast?.((one) => one.id === id);
    if (mine) return mine.skip ? "skipped" : String(mine.label);
    if (!this.labels.has(id)) this.labels.set(id, get(`/samples/label?${new URLSearchParams({ id })}`).then((found) => found.text).catch(() => null));
    return this.labels.get(id);
  }

  #header() {
    this.dot = h("span.saved", { role: "status", "aria-live": "polite" });
    this.tally = h("span.tally");
    this.training = h("span.training", { "aria-live": "off" });
    this.links = SCREENS.map(([path, name]) => h("a", { href: path, data: { go: "" } }, name));
    document.getElementById("top").replaceChildren(
      h("span.brand", {}, this.about.name),
      h("nav", { "aria-label": "Screens" }, this.links),
      this.training, this.dot, this.tally,
      h("button.theme", { type: "button", "aria-label": "Light, dark or high contrast", title: "Light, dark or high contrast", onclick: () => nextTheme() }, "◐"));
    document.title = `${this.about.name} · ally`;
    document.body.dataset.widget = this.about.widget;
    document.addEventListener("click", (event) => {
      const link = event.target.closest("a[data-go]");
      if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      this.go(new URL(link.href).pathname);
    });
    addEventListener("popstate", () => this.go(location.pathname, false));
    this.#status();
  }

  #status() {
    const { waiting, trouble } = this.outbox;
    const state = trouble && trouble !== "offline" ? "failed" : waiting ? "waiting" : "saved";
    const words = trouble === "offline" ? `offline, ${waiting} waiting` : trouble ? `not saved (${waiting})` : waiting ? `${waiting} waiting` : "saved";
    if (this.dot.dataset.state !== state || this.dot.textContent !== words) {
      this.dot.dataset.state = state;
      this.dot.textContent = words;
      this.dot.title = trouble && trouble !== "offline" ? trouble : "";
    }
    if (trouble && trouble !== this.told) {
      this.told = trouble;
      say(trouble === "offline" ? "The server does not answer. You can go on: answers are kept here and sent when it is back." : trouble, { kind: "bad" });
    } else if (!trouble) this.told = null;
    const goal = this.about.budget ?? this.about.samples;
    this.tally.textContent = `${this.pulse.labels.toLocaleString("en")} of ${goal.toLocaleString("en")}`;
    this.training.textContent = this.pulse.training ? `training${this.pulse.share === null ? "" : ` ${Math.round(100 * this.pulse.share)} %`}` : "";
  }

  async go(path, push = true) {
    const found = SCREENS.find(([known]) => known === path) ?? SCREENS[0];
    if (push) history.pushState(null, "", found[0]);
    this.close?.();
    this.close = null;
    this.links.forEach((link, index) => (SCREENS[index] === found ? link.setAttribute("aria-current", "page") : link.removeAttribute("aria-current")));
    document.body.dataset.screen = found[1].toLowerCase();
    if (found[0] === "/") this.close = this.label.open(main);
    else {
      const name = found[1].toLowerCase();
      main.replaceChildren(h("div.screen", { "aria-busy": "true" }));
      const screen = await import(`/assets/${name}.js`);
      if (document.body.dataset.screen === name) this.close = screen.open(main, this);
    }
    if (push) main.focus({ preventScroll: true });
  }
}

function theme(name) {
  if (name === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
}

function nextTheme() {
  const next = THEMES[(THEMES.indexOf(choice("theme", "auto")) + 1) % THEMES.length];
  choose("theme", next);
  theme(next);
  say({ auto: "Same as the system.", light: "Light.", dark: "Dark.", contrast: "High contrast." }[next]);
}

// The secret of a link is after the #, which is not sent: it is exchanged once, and leaves the address bar.
async function signIn() {
  const secret = decodeURIComponent(location.hash.slice(1));
  if (!secret || secret === "main") return;
  history.replaceState(null, "", location.pathname);
  try {
    await post("/session", { secret });
  } catch (error) {
    if (!(await get("/campaign").then(() => true, () => false))) throw error;
  }
}

theme(choice("theme", "auto"));
try {
  await signIn();
  const app = new App(await get("/campaign"));
  await app.start();
} catch (error) {
  main.replaceChildren(h("div.screen.sorry", {}, h("h1", {}, "The page cannot be opened"), h("p", {}, error.message || "The server does not answer."), h("p", {}, h("a", { href: "/" }, "Try again"))));
}
