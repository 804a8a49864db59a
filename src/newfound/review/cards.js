"use strict";
// The cards of the categories: confirm, rename, merge by keys or by dragging, reject.
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
  if (card.kind === "novel") {
    const last = verb("Not one", "X", () => reject(card), "verb last");
    last.title = `Give it up: its ${state.things} go to the nearest other categories (X). If it holds two or three, open it and split`;
    verbs.append(last);
  }
  const told = [];
  if (card.words.length) told.push(make("p", "facts telling", `${state.kind === "texts" ? "words" : "in file names"}: ${card.words.join(", ")}`));
  if (card.values.length) told.push(make("p", "facts telling", card.values.join(" · ")));
  if (card.like.length && card.kind === "novel") told.push(make("p", "facts", `nearest known: ${card.like.join(", ")}`));
  box.append(header, facts, ...told, ...weak, make("div", `grid${kindOfGrid}`), verbs);
  near.observe(box);
  return box;
};
const confirm = (card) => decide({ action: "confirm", subject: card.name }, `Confirmed ${card.name}.`);
const reject = (card) => decide({ action: "reject", subject: card.name }, `${card.name} is given up: its ${state.things} go to the nearest other categories.`);
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
