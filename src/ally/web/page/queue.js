// The next samples: asked for, fetched, decoded and laid out before they are needed.

import { Offline, get, newKey, post } from "./api.js";
import { inTab, ofTab } from "./kept.js";
import { build } from "./sample.js";

const AT_ONCE = 10;
const AHEAD = 8;
const PREPARED = 6;

export class Queue extends EventTarget {
  constructor(name, outbox) {
    super();
    this.name = `queries ${name}`;
    this.outbox = outbox;
    this.ready = [];
    this.queries = ofTab(this.name, []);
    this.done = new Set();
    this.ended = null;
    this.trouble = null;
    this.asking = false;
    this.model = null;
  }

  // After a reload the same queries come again, with what is still open of them.
  async start() {
    const before = this.queries;
    this.queries = [];
    for (const { key } of before) await this.#ask(key, false);
    this.fill();
  }

  get current() {
    return this.ready[0] ?? null;
  }

  take() {
    const taken = this.ready.shift();
    if (taken) this.done.add(taken.id);
    this.fill();
    return taken;
  }

  // Puts a sample back on top: one that was undone, or is looked at again.
  put(item) {
    this.done.delete(item.id);
    this.ready = [item, ...this.ready.filter((other) => other.id !== item.id)];
  }

  drop(id) {
    this.ready = this.ready.filter((item) => item.id !== id);
  }

  async fill() {
    this.#prepare();
    if (this.asking || this.ended || this.ready.length >= AHEAD) return;
    this.asking = true;
    try {
      while (this.ready.length < AHEAD && !this.ended && (await this.#ask(newKey(), true)));
    } finally {
      this.asking = false;
    }
  }

  async #ask(key, fresh) {
    try {
      const found = await post("/queries", { key, n: AT_ONCE });
      this.trouble = null;
      if (found.ended !== null) {
        if (fresh) this.ended = found.ended;
        if (this.ready.length === 0) this.dispatchEvent(new Event("first"));
        return false;
      }
      if (found.samples.length) this.queries.push({ key, number: found.query, lease: found.lease_seconds, at: Date.now() });
      inTab(this.name, this.queries);
      this.model ??= found.model;
      const first = this.ready.length === 0; // now: the last one may have been answered meanwhile
      const known = new Set(this.ready.map((item) => item.id));
      for (const asked of found.samples) {
        if (known.has(asked.id) || this.done.has(asked.id) || this.outbox.has(asked.id)) continue;
        this.ready.push({ id: asked.id, asked, query: found.query, built: null, old: null, expects: null });
      }
      this.#prepare();
      if (first && this.ready.length) this.dispatchEvent(new Event("first"));
      return true;
    } catch (error) {
      this.trouble = error instanceof Offline ? "offline" : error.message;
      if (!fresh) this.queries.push({ key, number: 0, lease: 3600, at: Date.now() });
      setTimeout(() => this.fill(), 2000);
      if (this.ready.length === 0) this.dispatchEvent(new Event("first"));
      return false;
    }
  }

  // The first few are built whole; each only once.
  #prepare() {
    for (const item of this.ready.slice(0, PREPARED)) item.built ??= prepared(item.id);
  }

  // Another model serves: what nobody has seen is given back and asked for anew. What is on screen stays.
  async exchange(model) {
    if (model === this.model) return;
    this.model = model;
    this.ended = null;
    const unseen = this.ready.slice(1).filter((item) => item.query && !item.old);
    const back = grouped(unseen);
    this.ready = this.ready.filter((item) => !unseen.includes(item));
    const kept = new Set(this.ready.map((item) => item.query));
    this.queries = this.queries.filter((query) => kept.has(query.number));
    inTab(this.name, this.queries);
    await Promise.allSettled(
      [...back].map(([query, items]) => post(`/queries/${query}/release`, { only: items.map((item) => item.id) })),
    );
    this.fill();
  }

  // The tab is left: others may have what is not on screen. A reload asks for it again by the same keys.
  leave() {
    const unseen = this.ready.slice(1).filter((item) => item.query);
    for (const [query, items] of grouped(unseen)) {
      const body = new Blob([JSON.stringify({ only: items.map((item) => item.id) })], { type: "application/json" });
      navigator.sendBeacon(`/api/v1/queries/${query}/release`, body);
    }
  }

  // Leases are renewed well before they end, for as long as the page is open.
  async renew(now = false) {
    for (const query of [...this.queries]) {
      const open = this.ready.some((item) => item.query === query.number);
      if (!open) this.queries = this.queries.filter((other) => other !== query);
      else if (now || Date.now() - query.at > (1000 * query.lease) / 3) {
        try {
          const found = await post("/queries", { key: query.key, n: AT_ONCE });
          const still = new Set(found.samples.map((asked) => asked.id));
          const gone = this.ready.slice(1).filter((item) => item.query === query.number && !still.has(item.id));
          for (const item of gone) this.drop(item.id);
          query.at = Date.now();
        } catch {
          // It is tried again; an answer without a lease counts as well.
        }
      }
    }
    inTab(this.name, this.queries);
  }
}

function grouped(items) {
  const found = new Map();
  for (const item of items) found.set(item.query, [...(found.get(item.query) ?? []), item]);
  return found;
}

// A promise of what a sample looks like: {content, element}. It fails only offline, and is then tried again.
export function prepared(id) {
  const found = load(id);
  const item = { promise: found, value: null };
  found.then((value) => (item.value = value));
  return item;
}

async function load(id) {
  for (;;) {
    try {
      const content = await get(`/samples?${new URLSearchParams({ id })}`);
      return await build(content);
    } catch (error) {
      if (!(error instanceof Offline) && error.status !== 503 && error.status !== 429) {
        return build({ id, kind: "text", image: null, text: null, columns: {}, cut: 0, problem: error.message });
      }
      await new Promise((go) => setTimeout(go, 1500));
    }
  }
}
