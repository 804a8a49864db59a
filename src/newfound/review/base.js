"use strict";
// What all parts of the page use: its state, the server, messages, items and buttons.
// The server is the truth: each action is sent, and the page shows what came of it.
// Texts that people wrote are inserted by textContent only, never as HTML.
// Files without a build step: they share one scope, in the order of page.html.
const $ = (selector, root = document) => root.querySelector(selector);
const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
const make = (name, classes = "", text = "") => {
  const element = document.createElement(name);
  if (classes) element.className = classes;
  if (text) element.textContent = text;
  return element;
};
const number = (n) => n.toLocaleString("en");
const count = (n) => `${number(n)} ${n === 1 ? state.thing : state.things}`;
const PANELS = ["cards", "questions", "suspects", "history", "number"];

let state = null; // what the server said last
let panel = "cards";
let marked = null; // name of the category that is marked for a merge
let skipped = { questions: new Set(), suspects: new Set(), number: new Set() };
let applied = null; // how many times Apply had finished when this page was opened

// --------------------------------------------------------------------------------- the server
const ask = async (address, body) => {
  const options = body === undefined ? {} : {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
  };
  const response = await fetch(address, { ...options, credentials: "same-origin" });
  const text = await response.text();
  if (response.status === 403) throw new Error(text);
  const answer = JSON.parse(text);
  if (!response.ok) throw new Error(answer.error || `The server answered ${response.status}.`);
  return answer;
};
const trying = async (work) => {
  try { return await work(); } catch (error) {
    const lost = error instanceof TypeError;
    tell(lost ? "The server does not answer. Start newfound review again; nothing is lost." : error.message, true);
    return null;
  }
};
const load = async () => { state = await ask("api/state"); show(); };
const decide = (edit, words) => trying(async () => {
  await ask("api/edit", edit);
  await load();
  tell(`${words} Undo: U`);
  return true;
});
const reverse = (way) => trying(async () => {
  const done = await ask(`api/${way}`, {});
  const edit = done.undone || done.redone;
  await load();
  tell(`${way === "undo" ? "Undone" : "Redone"}: ${edit.action} ${first(edit.subject)}`);
});
const apply = () => trying(async () => { await ask("api/apply", {}); await poll(); });
const poll = async () => {
  const now = await ask("api/version").catch(() => null);
  if (!now) return;
  showProgress(now.apply);
  if (applied === null) applied = now.apply.n;
  if (state && now.version !== state.version) await load();
  if (now.apply.n > applied) { applied = now.apply.n; showChanges(now.apply); }
};
const watch = async () => {
  if (!document.hidden) await trying(poll);
  setTimeout(watch, $("#progress").hidden ? 1000 : 300);
};

// ----------------------------------------------------------------------------------- messages
let toastTimer;
const tell = (words, isBad = false) => {
  const toast = $("#toast");
  toast.textContent = words;
  toast.className = isBad ? "shown bad" : "shown";
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => { toast.className = ""; }, isBad ? 8000 : 3500);
};
const first = (lines) => {
  const [one, ...more] = lines.split("\n");
  return more.length ? `${one} and ${more.length} more` : one;
};
const showProgress = (status) => {
  const line = $("#progress");
  const isOn = status.state === "running" || status.state === "drawing";
  line.hidden = !isOn;
  $("#apply").disabled = status.state === "running" || !state || !state.n_pending;
  if (status.state === "failed" && status.error !== showProgress.told) tell(status.error, true);
  showProgress.told = status.error;
  if (!isOn) return;
  const total = status.total || 0;
  $("#progress-text").textContent = status.state === "drawing" ? "Drawing the report" : status.step;
  line.classList.toggle("unknown", !total);
  $("#progress-bar").style.width = total ? `${(100 * status.done) / total}%` : "30%";
};
const showChanges = (status) => {
  $("#changes-title").textContent = status.headline;
  $("#changes-lines").replaceChildren(...status.lines.map((line) => make("li", "", line)));
  if (!$("#changes").open) $("#changes").showModal();
};

// -------------------------------------------------------------------------------------- items
const tile = (row, item, size = "small") => {
  const image = make("img", "tile");
  Object.assign(image, { src: `picture/${size}/${row}`, alt: item.id, loading: "lazy", decoding: "async", draggable: false });
  return image;
};
const inner = (row, item, size = "small") => state.kind === "pictures" ? tile(row, item, size)
  : make("bdi", "", item.text ?? item.id);
const still = (row, size) => {
  const item = state.items[row];
  const words = state.kind === "texts" ? "quote" : state.kind === "features" ? "chip" : "thumb";
  const button = make("button", words);
  Object.assign(button, { type: "button", title: item.id, tabIndex: -1 });
  button.append(inner(row, item, size));
  button.addEventListener("click", (event) => { event.stopPropagation(); enlarge(row, item); });
  return button;
};
const grid = (rows) => {
  const kind = { pictures: "", texts: " words", features: " chips" }[state.kind];
  const box = make("div", `grid${kind}`);
  box.append(...rows.slice(0, state.kind === "texts" ? 4 : 9).map((row) => still(row)));
  return box;
};
const enlarge = (row, item) => {
  const body = state.kind === "pictures" ? tile(row, item, "large") : make("p", "lead", item.text ?? item.id);
  body.className = body.className.replace("tile", "");
  const facts = `${item.id} · ${item.label === null ? `confidence ${Math.round(100 * item.confidence)} %` : `label ${item.label}`}`;
  $("#large-body").replaceChildren(body, make("p", "hint", facts));
  $("#large").showModal();
};
const verb = (words, key, act, classes = "verb") => {
  const button = make("button", classes);
  button.type = "button";
  button.append(`${words} `, make("kbd", "", key));
  button.title = `${words} (${key})`;
  button.setAttribute("aria-keyshortcuts", key === "↵" ? "Enter" : key);
  button.addEventListener("click", (event) => { event.stopPropagation(); act(); });
  return button;
};
const head = (card) => {
  const line = make("p", `look-head ${card.kind}`);
  const swatch = make("span", "swatch");
  line.style.setProperty("--hue", card.hue);
  line.append(swatch, make("bdi", "", card.name), " ", make("span", "hint", `${card.kind === "novel" ? "new" : "known"}, ${count(card.size)}`));
  return line;
};

