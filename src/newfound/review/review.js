"use strict";
// The page as a whole: which panel is shown, and the keys.
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
const choose = (name) => {
  panel = name;
  if (state) show();
  $(`#tab-${name}`).scrollIntoView({ block: "nearest", inline: "nearest" }); // on a phone the tabs scroll
};

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
