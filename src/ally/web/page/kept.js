// What the browser keeps: choices of this person in localStorage, this tab's queries in sessionStorage, unsent answers
// in IndexedDB.

const own = (area, name, fallback) => {
  try {
    return JSON.parse(area.getItem(`ally ${name}`)) ?? fallback;
  } catch {
    return fallback;
  }
};
const keep = (area, name, value) => {
  try {
    area.setItem(`ally ${name}`, JSON.stringify(value));
  } catch {
    // Without room or leave to keep it, it holds until the tab is closed.
  }
};

export const choice = (name, fallback) => own(localStorage, name, fallback);
export const choose = (name, value) => keep(localStorage, name, value);
export const ofTab = (name, fallback) => own(sessionStorage, name, fallback);
export const inTab = (name, value) => keep(sessionStorage, name, value);

// Unsent entries by key, in the order in which they came. Without IndexedDB (private windows of some browsers) they are
// kept in memory, and `durable` is false.
export class Unsent {
  static async open(name) {
    const unsent = new Unsent();
    unsent.memory = new Map();
    try {
      unsent.database = await new Promise((done, fail) => {
        const request = indexedDB.open(`ally ${name}`, 1);
        request.onupgradeneeded = () => request.result.createObjectStore("unsent", { keyPath: "key" });
        request.onsuccess = () => done(request.result);
        request.onerror = () => fail(request.error);
      });
    } catch {
      unsent.database = null;
    }
    return unsent;
  }

  get durable() {
    return this.database !== null;
  }

  #run(mode, act) {
    if (!this.database) return Promise.resolve(act(null));
    return new Promise((done, fail) => {
      const transaction = this.database.transaction("unsent", mode, { durability: "strict" });
      const request = act(transaction.objectStore("unsent"));
      transaction.oncomplete = () => done(request.result);
      transaction.onerror = () => fail(transaction.error);
    });
  }

  put(entry) {
    return this.#run("readwrite", (store) => (store ? store.put(entry) : this.memory.set(entry.key, entry)));
  }

  delete(keys) {
    return this.#run("readwrite", (store) => {
      let last;
      for (const key of keys) last = store ? store.delete(key) : this.memory.delete(key);
      return last;
    });
  }

  async all() {
    const found = await this.#run("readonly", (store) => (store ? store.getAll() : [...this.memory.values()]));
    return found.sort((one, other) => one.order - other.order);
  }
}
