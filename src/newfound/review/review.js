"use strict";
// The review page. The server is the truth: each action is sent, and the page shows what came of it.
// Texts that people wrote are inserted by textContent only, never as HTML.
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
const inner = (row, item) => state.kind === "pictures" ? tile(row, item)
  : make("bdi", "", item.text ?? item.id);
const still = (row) => {
  const item = state.items[row];
  const words = state.kind === "texts" ? "quote" : state.kind === "features" ? "chip" : "thumb";
  const button = make("button", words);
  Object.assign(button, { type: "button", title: item.id, tabIndex: -1 });
  button.append(inner(row, item));
  button.addEventListener("click", (event) => { event.stopPropagation(); enlarge(row, item); });
  return button;
};
const grid = (rows) => {
  const kind = { pictures: "", texts: " words", features: " chips" }[state.kind];
  const box = make("div", `grid${kind}`);
  box.append(...rows.slice(0, state.kind === "texts" ? 4 : 9).map(still));
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

// -------------------------------------------------------------------------------------- cards
const near = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) {
    if (!isIntersecting) continue;
    near.unobserve(target);
    $(".grid", target).replaceWith(grid(target.card.rows));
  }
}, { rootMargin: "300px" });

const makeCard = (card) => {
  const box = make("article", `card ${card.kind}${card.decided ? " decided" : ""}${card.name === marked ? " marked" : ""}`);
  box.card = card;
  box.tabIndex = -1;
  box.draggable = true;
  box.setAttribute("role", "listitem");
  box.setAttribute("aria-label", `${card.name}, ${card.kind === "novel" ? "new" : "known"}, ${count(card.size)}, ${card.word}`);
  box.style.setProperty("--hue", card.hue);
  const header = make("header");
  const title = make("h3");
  title.append(make("span", "swatch"), make("bdi", "", card.name));
  header.append(title, make("span", `word ${card.word}`, card.word));
  const kind = card.kind === "novel" ? "new" : "known";
  const facts = make("p", "facts", `${kind} · ${count(card.size)}`);
  const weak = card.weak.length ? [make("p", "weak", card.weak.join("; "))] : [];
  const kindOfGrid = { pictures: "", texts: " words", features: " chips" }[state.kind];
  const verbs = make("div", "verbs");
  if (!card.decided) verbs.append(verb("Confirm", "C", () => confirm(card)));
  verbs.append(verb("Rename", "R", () => rename(card)), verb("Merge", "M", () => mark(card)), verb("Open", "↵", () => open(card.name)));
  if (card.kind === "novel") verbs.append(verb("Not one", "X", () => reject(card), "verb last"));
  const told = [];
  if (card.words.length) told.push(make("p", "facts telling", `${state.kind === "texts" ? "words" : "in file names"}: ${card.words.join(", ")}`));
  if (card.values.length) told.push(make("p", "facts telling", card.values.join(" · ")));
  if (card.like.length && card.kind === "novel") told.push(make("p", "facts", `nearest known: ${card.like.join(", ")}`));
  box.append(header, facts, ...told, ...weak, make("div", `grid${kindOfGrid}`), verbs);
  near.observe(box);
  return box;
};
const confirm = (card) => decide({ action: "confirm", subject: card.name }, `Confirmed ${card.name}.`);
const reject = (card) => decide({ action: "reject", subject: card.name }, `${card.name} is not one category.`);
const merge = (one, other) => { marked = null; return decide({ action: "merge", subject: one, object: other }, `Merged ${one} and ${other}.`); };
const mark = (card) => {
  if (marked && marked !== card.name) return merge(marked, card.name);
  marked = marked ? null : card.name;
  for (const box of $$(".card")) box.classList.toggle("marked", box.card.name === marked);
  tell(marked ? `${card.name} is marked. Go to another category and press M to merge.` : "Nothing is marked.");
  return null;
};
const rename = async (card) => {
  const name = await askName(`Rename ${card.name}`, "Choose a known name, or write a new one. The name of another category merges both.", true, card.suggested);
  if (!name || name === card.name) return;
  if (state.cards.some((other) => other.name === name)) await merge(name, card.name);
  else await decide({ action: "rename", subject: card.name, value: name }, `${card.name} is now ${name}.`);
};
let nameAsked = null;
const askName = (title, hint, isNeeded = true, suggested = "") => new Promise((resolve) => {
  $("#ask-title").textContent = title;
  $("#ask-hint").textContent = hint;
  const input = $("#ask-input");
  input.value = suggested; // selected: whatever is typed replaces it
  input.required = isNeeded;
  $("#names").replaceChildren(...state.cards.map(({ name }) => Object.assign(make("option"), { value: name })));
  nameAsked = resolve;
  $("#ask").returnValue = "";
  $("#ask").showModal();
  input.select();
});
$("#ask").addEventListener("close", () => {
  if (nameAsked) nameAsked($("#ask").returnValue === "ok" ? $("#ask-input").value.trim() : null);
  nameAsked = null;
});

let dragged = null;
const cards = $("#cards");
cards.addEventListener("focusin", (event) => setStop($$(".card"), event.target.closest(".card")));
cards.addEventListener("dragstart", (event) => {
  const box = event.target.closest(".card");
  if (!box) return;
  dragged = box;
  box.classList.add("dragged");
  event.dataTransfer.effectAllowed = "link";
  event.dataTransfer.setData("text/plain", box.card.name);
});
cards.addEventListener("dragend", () => { $$(".card").forEach((box) => box.classList.remove("dragged", "over")); dragged = null; });
cards.addEventListener("dragover", (event) => {
  const box = event.target.closest(".card");
  $$(".card.over").forEach((other) => other !== box && other.classList.remove("over"));
  if (!dragged || !box || box === dragged) return;
  event.preventDefault();
  box.classList.add("over");
});
cards.addEventListener("drop", (event) => {
  const box = event.target.closest(".card");
  if (!dragged || !box || box === dragged) return;
  event.preventDefault();
  merge(box.card.name, dragged.card.name);
});

// ---------------------------------------------------------------------------------- one panel
const current = () => document.activeElement.closest?.(".card") || null;
const showCards = () => {
  const at = current()?.card.name;
  const place = Math.max(0, $$(".card").findIndex((box) => box.card.name === at));
  const words = $("#find").value.trim().toLowerCase();
  const found = state.cards.filter(({ name }) => name.toLowerCase().includes(words));
  near.disconnect();
  cards.replaceChildren(...found.map(makeCard));
  const boxes = $$(".card");
  const again = boxes.find((box) => box.card.name === at) || boxes[Math.min(place, boxes.length - 1)];
  if (boxes.length) setStop(boxes, again || boxes[0]);
  if (at && again && !$("dialog[open]")) again.focus({ preventScroll: boxes.indexOf(again) === place });
  const n = state.cards.filter((card) => card.decided).length;
  $("#cards-hint").textContent = `${number(n)} of ${number(state.cards.length)} decided. What a decision would teach most comes first. Keys: ?`;
};
const next = (kind, key) => { skipped[kind].add(key); show(); };
const side = (card) => { const box = make("div"); box.append(head(card), grid(card.rows)); return box; };
const showQuestions = () => {
  const root = $("#questions-panel");
  const open_ = state.questions.filter((q) => !skipped.questions.has(`${q.first}\n${q.second}`));
  if (!open_.length) return root.replaceChildren(make("p", "empty", "No more pairs to judge."));
  const q = open_[0];
  const by = (name) => state.cards.find((card) => card.name === name);
  const same = () => merge(q.first, q.second);
  const different = () => decide({ action: "different", subject: q.first, object: q.second }, `${q.first} and ${q.second} are different.`);
  const skip = () => next("questions", `${q.first}\n${q.second}`);
  const box = make("article", "question");
  const sides = make("div", "sides");
  sides.append(side(by(q.first)), side(by(q.second)));
  const why = q.mixing === null ? `No other category is nearer to ${q.first}.` : `The ${state.things} most similar to those of one are often in the other.`;
  const answers = make("div", "answers");
  answers.append(verb("The same", "S", same, "primary"), verb("Different", "D", different, "quiet"), verb("Skip", "N", skip, "quiet"), make("p", "hint", `${number(open_.length)} to go`));
  box.append(make("h2", "", "Are these two the same?"), make("p", "hint", why), sides, answers);
  box.keys = { s: same, d: different, n: skip };
  root.replaceChildren(box);
  return null;
};
const showSuspects = () => {
  const root = $("#suspects-panel");
  const open_ = state.suspects.filter((s) => !skipped.suspects.has(s.id));
  if (!open_.length) return root.replaceChildren(make("p", "empty", "No more labels to check."));
  const s = open_[0];
  const change = () => decide({ action: "relabel", subject: s.id, value: s.suggested }, `${s.id} is now ${s.suggested}.`);
  const keep = () => decide({ action: "relabel", subject: s.id, value: s.given }, `${s.id} stays ${s.given}.`);
  const skip = () => next("suspects", s.id);
  const box = make("article", "question");
  const middle = make("div", `middle${state.kind === "pictures" ? "" : " wide"}`);
  middle.append(still(s.row));
  const half = (name, rows, words) => {
    const part = make("div");
    const title = make("p", "look-head");
    title.append(make("bdi", "", name), " ", make("span", "hint", words));
    part.append(title, grid(rows));
    return part;
  };
  const sides = make("div", "sides");
  sides.append(half(s.given, s.given_rows, "its label; nearest with it"), half(s.suggested, s.suggested_rows, "suggested; nearest there"));
  const answers = make("div", "answers");
  answers.append(verb("Change it", "Y", change, "primary"), verb("Keep it", "K", keep, "quiet"), verb("Skip", "N", skip, "quiet"), make("p", "hint", `${number(state.n_suspects - skipped.suspects.size)} to go`));
  const title = make("h2");
  title.append("Is this ", make("bdi", "", s.given), " or ", make("bdi", "", s.suggested), "?");
  box.append(title, make("p", "hint", `${s.id}: ${s.n_neighbours} of its ${s.n_asked} nearest ${state.things} are ${s.suggested}.`), middle, sides, answers);
  box.keys = { y: change, k: keep, n: skip };
  root.replaceChildren(box);
  return null;
};
const interval = (count) => `${Math.floor(count.low)} to ${Math.ceil(count.high)}`;
const showInterval = ({ before, now, n_answers: n }) => {
  const words = `${now.n} new ${now.n === 1 ? "category" : "categories"}, 90 % interval: ${interval(now)}.`;
  const told = make("p", "lead", words);
  const then = make("p", "hint", n ? `Before your ${number(n)} ${n === 1 ? "answer" : "answers"}: ${before.n}, ${interval(before)}.` : "Each answer makes the interval narrower.");
  const bar = make("div", "span");
  bar.setAttribute("role", "img");
  bar.setAttribute("aria-label", words);
  const most = Math.max(before.high, now.high, 1);
  for (const [kind, count] of [["before", before], ["now", now]]) {
    const part = make("span", kind);
    part.style.left = `${(100 * count.low) / most}%`;
    part.style.width = `${Math.max(1, (100 * (count.high - count.low)) / most)}%`;
    bar.append(part);
  }
  const box = make("div", "number");
  box.append(told, bar, then);
  return box;
};
const showNumber = () => {
  const root = $("#number-panel");
  const all = state.number;
  if (!all) return root.replaceChildren(make("p", "empty", "There is nothing to ask: the number was given, or nothing new was found."));
  const key = (q) => `${q.first} ${q.second}`;
  const open_ = all.questions.filter((q) => !skipped.number.has(key(q)));
  const done = all.n_answers >= all.enough;
  const title = make("h2", "", done ? "Are these two the same? You may stop here, or go on." : `Are these two the same? ${number(all.enough)} questions to be sure of the number.`);
  if (!open_.length) return root.replaceChildren(showInterval(all), make("p", "empty", "No more pairs to judge. Apply obeys the answers."));
  const q = open_[0];
  const [one, other] = [state.items[q.first], state.items[q.second]];
  const answer = (action) => decide({ action, subject: one.id, object: other.id, value: action === "different" ? "items" : "", probability: q.probability }, action === "same" ? "The same." : "Different.");
  const same = () => answer("same"), different = () => answer("different");
  const skip = () => next("number", key(q));
  const sides = make("div", "sides");
  for (const [row, item] of [[q.first, one], [q.second, other]]) {
    const box = make("div", `middle${state.kind === "pictures" ? "" : " wide"}`);
    box.append(still(row));
    if (item.label !== null) box.append(make("p", "hint", item.label));
    sides.append(box);
  }
  const answers = make("div", "answers");
  answers.append(verb("The same", "S", same, "primary"), verb("Different", "D", different, "quiet"), verb("Skip", "N", skip, "quiet"), make("p", "hint", `${number(all.n_answers)} of ${number(all.enough)} answered. Pairs are drawn at random: many differ. Skip only what nobody could tell.`));
  const box = make("article", "question");
  box.append(title, sides, answers, showInterval(all));
  box.keys = { s: same, d: different, n: skip };
  root.replaceChildren(box);
  return null;
};
const showHistory = () => {
  const root = $("#history-panel");
  if (!state.history.length) return root.replaceChildren(make("p", "empty", "Nothing is decided yet."));
  const table = make("table", "log");
  for (const edit of [...state.history].reverse()) {
    const row = table.insertRow();
    row.className = edit.counts || edit.action === "undo" ? "" : "off";
    const cells = [edit.id, edit.action, first(edit.subject), first(edit.object), edit.value];
    for (const text of cells) row.insertCell().append(make("bdi", "", text));
    row.insertCell().append(make("time", "", edit.time.replace("T", " ").slice(0, 16)));
    const last = row.insertCell();
    if (edit.counts && edit.id) {
      const undo = make("button", "link", "Undo");
      undo.addEventListener("click", () => decide({ action: "undo", subject: edit.id }, `Undone: ${edit.id}.`));
      last.append(undo);
    }
  }
  const scroll = make("div", "scroll");
  scroll.append(table);
  const link = Object.assign(make("a", "", "edits.csv"), { href: "run/edits.csv" });
  const note = make("p", "hint", "Every decision is a row of ");
  note.append(link, ", which you may also edit by hand.");
  return root.replaceChildren(note, scroll);
};
const showNotices = () => {
  const lines = state.trouble ? [state.trouble] : state.problems;
  const box = make("div", "warning");
  box.append(...lines.map((line) => make("p", "", line)));
  $("#notices").replaceChildren(...(lines.length ? [box] : []));
};
const show = () => {
  document.title = `Review of ${state.run} · newfound`;
  $("#run").textContent = state.run;
  $("#answer").textContent = state.answer;
  showNotices();
  showLevels(state.levels, (k) => decide({ action: "granularity", subject: String(k) }, `${k} categories.`));
  showTrust(state.trust);
  const n = { cards: state.cards.length, questions: state.questions.length, suspects: state.n_suspects, history: state.history.length, number: state.number ? Math.max(0, state.number.enough - state.number.n_answers) : 0 };
  for (const tab of $$("[role=tab]")) {
    const isOn = tab.dataset.panel === panel;
    tab.setAttribute("aria-selected", isOn);
    tab.tabIndex = isOn ? 0 : -1;
    $(".count", tab).textContent = n[tab.dataset.panel] ? number(n[tab.dataset.panel]) : "";
  }
  for (const name of PANELS) $(`#${name}-panel`).hidden = name !== panel;
  $("#undo").disabled = !state.can_undo;
  $("#redo").disabled = !state.can_redo;
  $("#apply").disabled = !state.n_pending || !$("#progress").hidden;
  $("#apply").textContent = state.n_pending ? `Apply ${number(state.n_pending)}` : "Apply";
  ({ cards: showCards, questions: showQuestions, suspects: showSuspects, history: showHistory, number: showNumber })[panel]();
};
const choose = (name) => { panel = name; if (state) show(); };

// --------------------------------------------------------------------------- a whole category
let opened = null; // { name, size, rows, items }
let lastPicked = null;
const picks = () => $$(".pick");
const chosen = () => picks().filter((pick) => pick.getAttribute("aria-selected") === "true");
const ids = () => chosen().map((pick) => opened.items[pick.row].id).join("\n");
const showChosen = () => {
  const n = chosen().length;
  $("#open-count").textContent = n ? `${count(n)} selected` : "";
  for (const name of ["#open-split", "#open-move", "#open-large"]) $(name).disabled = !n;
};
const pick = (button, isRange) => {
  const all = picks();
  const isOn = button.getAttribute("aria-selected") !== "true";
  const from = isRange && lastPicked ? all.indexOf(lastPicked) : all.indexOf(button);
  const [low, high] = [from, all.indexOf(button)].sort((a, b) => a - b);
  for (const other of all.slice(low, high + 1)) other.setAttribute("aria-selected", isRange ? true : isOn);
  lastPicked = button;
  showChosen();
};
const addPicks = (some) => {
  $("#open-items").append(...some.rows.map((row) => {
    const item = some.items[row];
    const button = make("button", "pick");
    button.row = row;
    button.type = "button";
    button.tabIndex = -1;
    button.setAttribute("role", "option");
    button.setAttribute("aria-selected", "false");
    if (state.kind === "pictures") button.setAttribute("aria-label", item.id);
    button.title = item.id;
    button.append(inner(row, item));
    if (item.label !== null) button.append(make("span", "label", "label"));
    return button;
  }));
};
const open = (name) => trying(async () => {
  opened = await ask(`api/members?name=${encodeURIComponent(name)}`);
  $("#open-title").textContent = name;
  $("#open-hint").textContent = `${count(opened.size)}, the most typical first. Select those that are something else, then split them off or move them.`;
  $("#open-items").className = `open-body${state.kind === "pictures" ? "" : " words"}`;
  $("#open-items").replaceChildren();
  lastPicked = null;
  addPicks(opened);
  showChosen();
  if (!$("#open").open) $("#open").showModal();
  if (picks().length) { picks()[0].tabIndex = 0; picks()[0].focus(); }
  while (opened && opened.name === name && $("#open").open && picks().length < opened.size) {
    const more = await ask(`api/members?name=${encodeURIComponent(name)}&offset=${picks().length}`);
    if (!more.rows.length || opened.name !== name) break;
    Object.assign(opened.items, more.items);
    addPicks(more);
  }
});
const split = async () => {
  if (!chosen().length) return;
  const subject = ids(), n = chosen().length, from = opened.name;
  const name = await askName(`Split ${count(n)} off ${from}`, "A name for them, if you know one. Leave it empty for a number.", false);
  if (name === null) return;
  if (name && state.cards.some((card) => card.name === name)) return send({ action: "move", subject, object: name }, `Moved ${count(n)} to ${name}.`);
  await send({ action: "split", subject: from, object: subject, value: name }, `Split ${count(n)} off ${from}.`);
};
const move = async () => {
  if (!chosen().length) return;
  const subject = ids(), n = chosen().length;
  const name = await askName(`Move ${count(n)}`, "The name of a category that exists.");
  if (name) await send({ action: "move", subject, object: name }, `Moved ${count(n)} to ${name}.`);
};
const send = async (edit, words) => { if (await decide(edit, words)) $("#open").close(); };
$("#open-items").addEventListener("click", (event) => {
  const button = event.target.closest(".pick");
  if (button) pick(button, event.shiftKey);
});
$("#open-items").addEventListener("dblclick", (event) => {
  const button = event.target.closest(".pick");
  if (button) enlarge(button.row, opened.items[button.row]);
});
const pickHalf = () => {
  const half = new Set(opened.half);
  for (const button of picks()) button.setAttribute("aria-selected", half.has(button.row));
  // Those of one half side by side: a glance tells whether they are alike.
  $("#open-items").append(...picks().sort((a, b) => half.has(b.row) - half.has(a.row)));
  goTo(picks(), picks()[0]);
  showChosen();
};
const largest = () => { const [one] = chosen().slice(-1); if (one) enlarge(one.row, opened.items[one.row]); };

// --------------------------------------------------------------------------------------- keys
const step = (boxes, at, key) => {
  const width = boxes[0].getBoundingClientRect().width || 1;
  const columns = Math.max(1, Math.round(boxes[0].parentElement.clientWidth / (width + 6)));
  const by = { ArrowRight: 1, j: 1, ArrowLeft: -1, k: -1, ArrowDown: columns, ArrowUp: -columns }[key];
  if (by === undefined) return null;
  return boxes[Math.max(0, Math.min(boxes.length - 1, at < 0 ? 0 : at + by))];
};
// One card, with its buttons, is where Tab stops; arrow keys lead to the others.
const setStop = (boxes, target) => {
  for (const box of boxes) for (const stop of [box, ...$$(".verb", box)]) stop.tabIndex = box === target ? 0 : -1;
};
const goTo = (boxes, target) => {
  setStop(boxes, target);
  target.focus();
  target.scrollIntoView({ block: "nearest" });
};
const keysInOpen = (event, key) => {
  const boxes = picks();
  const at = boxes.indexOf(document.activeElement);
  const to = boxes.length ? step(boxes, at, event.key) : null;
  if (to) goTo(boxes, to);
  else if (event.key === " " && at >= 0) pick(boxes[at], event.shiftKey);
  else if (key === "h") pickHalf();
  else if (key === "s") split();
  else if (key === "v") move();
  else if (key === "z" && at >= 0) enlarge(boxes[at].row, opened.items[boxes[at].row]);
  else return false;
  return true;
};
const keysOnCards = (event, key) => {
  const boxes = $$(".card");
  const box = current();
  const to = boxes.length ? step(boxes, boxes.indexOf(box), event.key) : null;
  if (to) { goTo(boxes, to); return true; }
  const act = { c: confirm, r: rename, m: mark, x: reject, Enter: (card) => open(card.name) }[event.key === "Enter" ? "Enter" : key];
  if (!act || !box || (event.key === "Enter" && document.activeElement !== box)) return false;
  if (!(key === "c" && box.card.decided) && !(key === "x" && box.card.kind !== "novel")) act(box.card);
  return true;
};
document.addEventListener("keydown", (event) => {
  if (!state) return;
  const isUndo = (event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "z";
  const inText = event.target.matches("input, select, textarea");
  if (isUndo && !inText) { event.preventDefault(); reverse(event.shiftKey ? "redo" : "undo"); return; }
  if (event.ctrlKey || event.metaKey || event.altKey || inText) return;
  const key = event.key.toLowerCase();
  const dialog = $$("dialog[open]").pop();
  let isDone = true;
  if (dialog) isDone = dialog.id === "open" && keysInOpen(event, key);
  else if (event.key === "?") $("#help").showModal();
  else if (key === "u") reverse(event.shiftKey ? "redo" : "undo");
  else if (key === "a") { if (!$("#apply").disabled) apply(); }
  else if (key === "g") openLevels();
  else if (event.key === "/") { choose("cards"); $("#find").focus(); }
  else if ("12345".includes(event.key)) choose(PANELS[event.key - 1]);
  else if (panel === "cards") isDone = keysOnCards(event, key);
  else if ($(`#${panel}-panel .question`)?.keys[key]) $(`#${panel}-panel .question`).keys[key]();
  else isDone = false;
  if (isDone) event.preventDefault();
});

// -------------------------------------------------------------------------------------- begin
$$("[role=tab]").forEach((tab, i, tabs) => {
  tab.addEventListener("click", () => choose(tab.dataset.panel));
  tab.addEventListener("keydown", (event) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    event.stopPropagation();
    const to = tabs[(i + by + tabs.length) % tabs.length];
    choose(to.dataset.panel);
    to.focus();
  });
});
$$("[data-close]").forEach((button) => button.addEventListener("click", () => button.closest("dialog").close()));
$("#undo").addEventListener("click", () => reverse("undo"));
$("#redo").addEventListener("click", () => reverse("redo"));
$("#apply").addEventListener("click", apply);
$("#help-button").addEventListener("click", () => $("#help").showModal());
$("#find").addEventListener("input", showCards);
$("#find").addEventListener("keydown", (event) => { if (event.key === "Escape" || event.key === "Enter") { const box = $(".card"); if (box) { event.preventDefault(); goTo($$(".card"), box); } } });
$("#select-all").addEventListener("click", () => { const all = picks(); const isOn = chosen().length < all.length; all.forEach((p) => p.setAttribute("aria-selected", isOn)); showChosen(); });
$("#select-half").addEventListener("click", pickHalf);
$("#open-split").addEventListener("click", split);
$("#open-move").addEventListener("click", move);
$("#open-large").addEventListener("click", largest);
trying(async () => { await load(); await poll(); watch(); });
