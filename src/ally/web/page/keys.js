// Which key does what. Digits and then letters are classes; every action has a letter and a key beside the letters, for
// when letters are typed to find a class. Keys can be changed; two actions on one key are named.

import { choice, choose } from "./kept.js";

export const ACTIONS = {
  skip: { text: "skip", keys: ["s", "Delete", "NumpadAdd"] },
  undo: { text: "undo", keys: ["z", "Backspace", "NumpadSubtract"] },
  back: { text: "back", keys: ["b", "ArrowLeft", "NumpadDivide"] },
  note: { text: "note", keys: ["n", "Insert", "NumpadMultiply"] },
  guess: { text: "hide guess", keys: ["h", "F8"] },
  closer: { text: "zoom in", keys: ["+", "="] },
  wider: { text: "zoom out", keys: ["-", "_"] },
  brighter: { text: "brighter", keys: ["]"] },
  darker: { text: "darker", keys: ["["] },
  help: { text: "keys", keys: ["?", "F1"] },
};
const LETTERS = "qwertyuiopadfgjklxcvm";
export const MANY = 20;
export const SHOWN = { Delete: "Del", Backspace: "⌫", ArrowLeft: "←", Insert: "Ins", Enter: "⏎", " ": "Space" };

export class Keys {
  constructor(classes, typing) {
    this.typing = typing;
    this.chosen = choice("keys", {});
    this.classes = classes;
    this.set();
  }

  set() {
    this.actions = new Map();
    this.names = {};
    for (const [action, { keys }] of Object.entries(ACTIONS)) {
      const own = this.chosen[`action ${action}`];
      const mine = own ? [own, ...keys.slice(1)] : keys;
      const usable = this.typing ? mine.filter((key) => key.length > 1) : mine;
      this.names[action] = usable[0] ?? "";
      for (const key of usable) this.actions.set(key, action);
    }
    this.labels = new Map();
    this.classKeys = this.typing ? this.classes.map(() => "") : this.#spread();
    this.classKeys.forEach((key, index) => key && this.labels.set(key, index));
  }

  #spread() {
    const texts = this.classes.map(({ text }) => text);
    // Where the classes are digits, a class is its own key.
    const alike = texts.every((text) => /^[0-9]$/.test(text)) && new Set(texts).size === texts.length;
    const free = alike ? texts : [..."1234567890", ...[...LETTERS].filter((letter) => !this.actions.has(letter))];
    return texts.map((text, index) => this.chosen[`class ${text}`] ?? free[index] ?? "");
  }

  choose(name, key) {
    if (key) this.chosen[name] = key;
    else delete this.chosen[name];
    choose("keys", this.chosen);
    this.set();
  }

  // Sentences about keys that two things want.
  clashes() {
    const users = new Map();
    const use = (key, name) => key && users.set(key, [...(users.get(key) ?? []), name]);
    this.classKeys.forEach((key, index) => use(key, `class ${this.classes[index].text}`));
    for (const [action, key] of Object.entries(this.names)) use(key, ACTIONS[action].text);
    return [...users].filter(([, names]) => names.length > 1).map(([key, names]) => `${key}: ${names.join(" and ")}`);
  }

  // {action} or {label: index}; the numpad counts as digits whatever NumLock says.
  read(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return null;
    const pad = /^Numpad([0-9])$/.exec(event.code);
    const key = pad ? pad[1] : event.key.length === 1 ? event.key.toLowerCase() : event.key;
    if (this.labels.has(key)) return { label: this.labels.get(key) };
    const action = this.actions.get(event.code.startsWith("Numpad") ? event.code : key) ?? this.actions.get(key);
    return action ? { action } : null;
  }
}

export const keyName = (key) => SHOWN[key] ?? (key.length === 1 ? key : key);
