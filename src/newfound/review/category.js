"use strict";
// A whole category: select, split off, move.
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

