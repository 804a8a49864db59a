"use strict";
// Texts that people wrote are inserted by textContent only, never as HTML.
const data = JSON.parse(document.getElementById("data").textContent);
const $ = (selector, root = document) => root.querySelector(selector);
const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
const n = data.id.length;
document.body.classList.remove("no-script");

const make = (name, classes = "", text = "") => {
  const element = document.createElement(name);
  if (classes) element.className = classes;
  if (text) element.textContent = text;
  return element;
};
const category = (i) => data.categories[data.category[i]];
const confidence = (i) => `${data.confidence[i]} %${data.unsure[i] ? " (unsure)" : ""}`;
const listen = (elements, type, act) => elements.forEach((e) => e.addEventListener(type, act));

// ------------------------------------------------------------------ thumbnails
const place = (sprites, tile) => {
  const perSheet = sprites.columns ** 2;
  const sheet = Math.floor(tile / perSheet);
  const row = Math.floor((tile % perSheet) / sprites.columns);
  return { sheet, row, column: tile % sprites.columns, rows: sprites.rows[sheet] };
};
const makeTile = (i, preferLarge) => {
  const large = preferLarge && i in data.largeTile;
  const sprites = large ? data.large : data.small;
  const at = place(sprites, large ? data.largeTile[i] : i);
  const tile = make("span", `tile ${large ? "l" : "s"}${at.sheet}`);
  const x = (100 * at.column) / (sprites.columns - 1);
  const y = (100 * at.row) / Math.max(1, at.rows - 1);
  tile.style.backgroundPosition = `${x}% ${y}%`;
  return tile;
};
const makeItem = (i, preferLarge) => {
  const words = data.text ? data.text[i] || "(empty text)" : data.id[i];
  const button = make("button", data.small ? "thumb" : data.text ? "quote" : "chip");
  button.type = "button";
  button.dataset.item = i;
  button.title = data.id[i];
  if (data.unsure[i]) button.classList.add("unsure");
  if (data.small) {
    button.setAttribute("aria-label", data.unsure[i] ? `${data.id[i]}, unsure` : data.id[i]);
    button.append(makeTile(i, preferLarge));
  } else button.append(make("bdi", "", words));
  return button;
};

// Thumbnails are drawn when their card comes near the window: a page may hold thousands.
const lazy = $$(".card, .lazy");
document.body.classList.add("scripted");
const nearby = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) {
    if (!isIntersecting) continue;
    target.classList.add("near");
    nearby.unobserve(target);
  }
}, { rootMargin: "600px" });
lazy.forEach((element) => nearby.observe(element));
addEventListener("beforeprint", () => lazy.forEach((element) => element.classList.add("near")));

// ------------------------------------------------------------------ one item
const viewer = $("#viewer");
let viewed = -1;
const fact = (list, name, value) => {
  list.append(make("dt", "", name));
  const dd = make("dd");
  dd.append(make("bdi", "", value));
  list.append(dd);
};
const view = (i) => {
  viewed = i;
  const body = $(".viewer-body");
  body.replaceChildren();
  if (data.small) body.append(makeTile(i, true));
  if (data.text) body.append(make("p", "words", data.text[i]));
  const id = make("p", "id");
  id.id = "viewer-id";
  id.append(make("bdi", "", data.id[i]));
  const list = make("dl");
  const kind = category(i).kind === "novel" ? "new" : "known";
  fact(list, "Category", `${category(i).name} (${kind})`);
  fact(list, "Label", data.labelled[i] ? "given" : "none");
  fact(list, "Confidence", confidence(i));
  if (data.runner[i] >= 0) fact(list, "Runner-up", data.categories[data.runner[i]].name);
  fact(list, "Outlier score", (data.outlier[i] / 100).toFixed(2));
  body.append(id, list);
  if (!viewer.open) viewer.showModal();
};
const step = (by) => {
  const next = viewed + by;
  if (next >= 0 && next < n && data.category[next] === data.category[viewed]) view(next);
};
listen($$("[data-step]"), "click", (event) => step(Number(event.target.dataset.step)));
viewer.addEventListener("keydown", (event) => {
  if (event.key === "ArrowLeft") step(-1);
  if (event.key === "ArrowRight") step(1);
});

// ------------------------------------------------------------------ all items of a category
const members = $("#members");
const PAGE = 400;
let queue = [];
const showMore = () => {
  $(".members-body").append(...queue.splice(0, PAGE).map((i) => makeItem(i, false)));
  $(".more").hidden = queue.length === 0;
};
const showMembers = (code) => {
  queue = [];
  for (let i = 0; i < n; i++) if (data.category[i] === code) queue.push(i);
  const { name, size } = data.categories[code];
  const part = queue.length < size ? `, of which ${queue.length.toLocaleString("en")} are shown` : "";
  const title = $("#members-title");
  title.replaceChildren(make("bdi", "", name), ` · ${size.toLocaleString("en")} ${size === 1 ? data.thing : data.things}${part}`);
  $(".members-body").replaceChildren();
  $(".members-body").classList.toggle("words", !data.small);
  showMore();
  members.showModal();
  members.scrollTop = 0;
};
$(".more").addEventListener("click", showMore);
listen([viewer, members], "click", (event) => {
  if (event.target === event.currentTarget) event.currentTarget.close();
});
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-item], [data-members], [data-spot]");
  if (!button) return;
  if (button.dataset.item !== undefined) view(Number(button.dataset.item));
  else if (button.dataset.members !== undefined) showMembers(Number(button.dataset.members));
  else spotlight(Number(button.dataset.spot), true);
});

// ------------------------------------------------------------------ filter, search, sort
const cards = $$(".card");
const words = data.categories.map((c) => [c.name.toLowerCase()]);
for (let i = 0; i < n; i++) {
  words[data.category[i]].push(data.id[i].toLowerCase());
  if (data.text) words[data.category[i]].push(data.text[i].toLowerCase());
}
let kind = "all";
const filter = () => {
  const query = $("#search").value.trim().toLowerCase();
  let seen = 0;
  for (const card of cards) {
    const fits = kind === "all" || card.dataset.kind === kind;
    const found = !query || words[card.dataset.code].some((word) => word.includes(query));
    card.hidden = !(fits && found);
    seen += !card.hidden;
  }
  const none = `No category contains “${$("#search").value.trim()}”.`;
  const some = seen < cards.length ? `${seen} of ${cards.length} categories` : "";
  $("#status").textContent = seen ? some : query ? none : "There are no such categories.";
};
const orders = {
  kind: (a, b) => a.dataset.place - b.dataset.place,
  size: (a, b) => b.dataset.size - a.dataset.size,
  doubt: (a, b) => b.dataset.doubt - a.dataset.doubt,
  name: (a, b) => a.dataset.name.localeCompare(b.dataset.name, undefined, { numeric: true }),
};
$("#sort").addEventListener("change", (event) => {
  $("#cards").append(...cards.sort(orders[event.target.value]));
});
$("#search").addEventListener("input", filter);
const press = (button) => {
  for (const other of $$("button", button.parentElement))
    other.setAttribute("aria-pressed", String(other === button));
};
listen($$("[data-kind]:is(button)"), "click", (event) => {
  press(event.currentTarget);
  kind = event.currentTarget.dataset.kind;
  filter();
});
// A link to a card that is hidden by a filter must still work.
addEventListener("hashchange", () => {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target || !target.hidden) return;
  $("#search").value = "";
  $('button[data-kind="all"]').click();
  target.scrollIntoView();
});

// ------------------------------------------------------------------ rerun
// A run that was started from Python has no command to copy.
listen($$("#copy"), "click", async (event) => {
  const button = event.currentTarget;
  try {
    await navigator.clipboard.writeText($("#command").textContent);
    button.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren($("#command"));
    button.textContent = "Selected";
  }
  setTimeout(() => (button.textContent = "Copy"), 2000);
});

// ------------------------------------------------------------------ coarser and finer
const level = $("#level");
if (level) {
  const slide = () => {
    const step = data.levels.find(({ k }) => k === Number(level.value));
    $$(".level-k").forEach((place) => { place.textContent = step.k; });
    $(".level-step").textContent = step.words;
    const note = step.counted ? ", as counted" : step.inside ? ", in the 90 % interval" : "";
    level.setAttribute("aria-valuetext", `${step.k} categories, ${step.novel} of them new${note}`);
    $$(".dendrogram g").forEach((join) => join.classList.toggle("on", Number(join.dataset.k) >= step.k));
  };
  level.addEventListener("input", slide);
  slide();
}
