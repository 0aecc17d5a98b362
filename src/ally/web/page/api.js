// Calls of the API; the page uses nothing else. A problem carries the library's sentence.

export class Problem extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

export class Offline extends Error {}

const BASE = "/api/v1";
const PATIENCE = 20000;

export async function call(method, path, body) {
  let response;
  try {
    response = await fetch(BASE + path, {
      method,
      headers: body === undefined ? {} : { "Content-Type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: AbortSignal.timeout(PATIENCE),
    });
  } catch (error) {
    throw new Offline(error.message);
  }
  const found = await response.json().catch(() => ({}));
  if (!response.ok) throw new Problem(response.status, found.detail ?? `the server said ${response.status}`);
  return found;
}

export const get = (path) => call("GET", path);
export const post = (path, body) => call("POST", path, body);

export const imageOf = (id, size, stamp = "") =>
  `${BASE}/samples/image?${new URLSearchParams({ id, size, ...(stamp ? { v: stamp } : {}) })}`;

export const newKey = () =>
  crypto.randomUUID?.() ?? Array.from(crypto.getRandomValues(new Uint8Array(16)), (n) => n.toString(16).padStart(2, "0")).join("");

// The stream of events; the browser opens it again by itself.
export function listen(told) {
  const source = new EventSource(`${BASE}/events`);
  source.addEventListener("pulse", (event) => told(JSON.parse(event.data)));
  return source;
}
