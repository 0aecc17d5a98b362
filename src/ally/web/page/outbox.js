// Answers and notes on their way. Each has a key made here; it is kept in the browser until the server has it on disk, and sent
// again under the same key for as long as that takes.

import { Offline, newKey, post } from "./api.js";

const AT_ONCE = 50;
const FIRST_PAUSE = 400;
const LONGEST_PAUSE = 5000;

export class Outbox extends EventTarget {
  constructor(unsent, name) {
    super();
    this.unsent = unsent;
    this.lock = `ally outbox ${name}`;
    this.entries = [];
    this.sent = new Set();
    this.trouble = null;
    this.pause = FIRST_PAUSE;
    this.busy = false;
    this.timer = 0;
    addEventListener("online", () => this.hurry());
  }

  async load() {
    const before = await this.unsent.all();
    const known = new Set(this.entries.map((entry) => entry.key));
    this.entries = [...before.filter((entry) => !known.has(entry.key)), ...this.entries];
    this.#changed();
    this.hurry();
  }

  get waiting() {
    return this.entries.length;
  }

  has(id) {
    return this.entries.some((entry) => entry.kind === "answer" && entry.body.id === id);
  }

  // Takes an answer: {id, label | skip, query, expects}. Gives its key.
  answer(body, shown) {
    const key = newKey();
    this.#add({ key, kind: "answer", body: { ...body, key }, shown, order: Date.now() + performance.now() / 1e6 });
    return key;
  }

  // Takes an answer back, by its key if it may still be here, else by its number.
  undo(key, number) {
    const entry = this.entries.find((one) => one.key === key);
    if (entry && !this.sent.has(key)) {
      this.#drop([key]);
      return;
    }
    this.#add({ key: newKey(), kind: "undo", of: number ? null : key, number: number ?? null, order: Date.now() + performance.now() / 1e6 });
  }

  // Takes a note: an empty text takes back the one before.
  note(id, text) {
    const key = newKey();
    this.#add({ key, kind: "note", body: { id, text, key }, order: Date.now() + performance.now() / 1e6 });
  }

  hurry() {
    clearTimeout(this.timer);
    this.pause = FIRST_PAUSE;
    this.#send();
  }

  #add(entry) {
    this.entries.push(entry);
    this.unsent.put(entry).catch(() => {
      this.trouble = "the browser cannot keep unsent answers; stay on this page until they are saved";
      this.#changed();
    });
    this.#changed();
    queueMicrotask(() => this.#send());
  }

  #drop(keys) {
    const gone = new Set(keys);
    this.entries = this.entries.filter((entry) => !gone.has(entry.key));
    for (const key of keys) this.sent.delete(key);
    this.unsent.delete(keys).catch(() => {});
    this.#changed();
  }

  #changed() {
    this.dispatchEvent(new Event("change"));
  }

  async #send() {
    if (this.busy || !this.entries.length) return;
    this.busy = true;
    try {
      // One tab at a time sends; what two tabs send is recorded once all the same.
      if (navigator.locks) await navigator.locks.request(this.lock, () => this.#drain());
      else await this.#drain();
      this.trouble = null;
      this.pause = FIRST_PAUSE;
    } catch (error) {
      this.trouble = error instanceof Offline ? "offline" : error.message;
      this.timer = setTimeout(() => this.#send(), this.pause);
      this.pause = Math.min(2 * this.pause, LONGEST_PAUSE);
    } finally {
      this.busy = false;
      this.#changed();
    }
  }

  async #drain() {
    while (this.entries.length) {
      const [entry] = this.entries;
      if (entry.kind === "answer") await this.#sendAnswers();
      else if (entry.kind === "note") await this.#sendOne(entry, "/notes", entry.body);
      else await this.#sendOne(entry, "/undo", entry.number > 0 && { key: entry.key, number: entry.number });
    }
  }

  async #sendAnswers() {
    const batch = [];
    for (const entry of this.entries) {
      if (entry.kind !== "answer" || batch.length === AT_ONCE) break;
      batch.push(entry);
      this.sent.add(entry.key);
    }
    const { outcomes } = await post("/answers", { answers: batch.map((entry) => entry.body) });
    this.trouble = null;
    const numbers = new Map(outcomes.map((outcome) => [outcome.key, outcome]));
    for (const entry of this.entries) {
      const outcome = entry.of && numbers.get(entry.of);
      if (!outcome) continue;
      entry.number = outcome.state === "recorded" ? outcome.number : -1;
      await this.unsent.put(entry);
    }
    this.#drop(batch.map((entry) => entry.key));
    for (const entry of batch) {
      this.dispatchEvent(new CustomEvent("outcome", { detail: { entry, outcome: numbers.get(entry.key) } }));
    }
  }

  // What goes by itself; without a body there is nothing to say. A refusal is told once, and ends it.
  async #sendOne(entry, path, body) {
    this.sent.add(entry.key);
    if (body) {
      try {
        await post(path, body);
      } catch (error) {
        if (!error.status || error.status >= 500 || error.status === 429 || error.status === 401) throw error;
        this.dispatchEvent(new CustomEvent("refused", { detail: error.message }));
      }
    }
    this.#drop([entry.key]);
  }
}
