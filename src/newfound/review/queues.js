"use strict";
// Questions one at a time: pairs of categories, doubtful labels, the number; and what was decided.
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
const interval = (count) => `${Math.round(count.low)} to ${Math.round(count.high)}`; // as the report rounds it
const showInterval = ({ before, now, n_answers: n }) => {
  const words = `${now.n} new ${now.n === 1 ? "category" : "categories"}, 90 % interval: ${interval(now)}.`;
  const told = make("p", "lead", words);
  const then = make("p", "hint", n ? `Before your ${number(n)} ${n === 1 ? "answer" : "answers"}: ${before.n}, ${interval(before)}.` : "The interval follows your answers.");
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
    box.append(still(row, "large"));
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
