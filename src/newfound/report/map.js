// The map. This file follows script.js in one function, and uses its names.
let spotlight = () => {};
const canvas = $("#plane canvas");
if (!canvas || !data.x) return;
const pen = canvas.getContext("2d");
const tip = $("#tip");
const EXTENT = 4095;
const MOST_TILES = 260;
const MARGIN = 28;
const MOST_STRETCH = 2.5;
const CELL = 8;
const sheets = new Map();
let width = 0, height = 0, ratio = 1, waiting = false;
let baseX = 1, baseY = 1;
let zoom = 1, centreX = EXTENT / 2, centreY = EXTENT / 2;
let layer = "all", spot = -1, hovered = -1;

const span = (values) => {
  let low = EXTENT, high = 0;
  for (const value of values) [low, high] = [Math.min(low, value), Math.max(high, value)];
  return Math.max(1, high - low);
};
let X = data.x, Y = data.y;
const rowsOf = data.categories.map(() => []);
for (let i = 0; i < n; i++) rowsOf[data.category[i]].push(i);
const middle = (values) => values.sort((a, b) => a - b)[values.length >> 1];
const anchorOf = (c) => [
  middle(rowsOf[c].map((i) => X[i])), middle(rowsOf[c].map((i) => Y[i])),
];
let anchors = [];
// Known categories are drawn first, below novel ones. Names of novel and large ones take precedence.
const rank = (c) => (data.categories[c].kind === "novel" ? 1e9 : 0) + data.categories[c].size;
const order = data.categories.map((_, c) => c).sort((a, b) => rank(a) - rank(b));

const dark = matchMedia("(prefers-color-scheme: dark)");
const colour = (c) => {
  const { kind, hue } = data.categories[c];
  if (kind === "novel") return `hsl(${hue} 72% ${dark.matches ? 60 : 48}%)`;
  return `hsl(${hue} 24% ${dark.matches ? 52 : 62}%)`;
};
const onScreen = (i) => toScreen(X[i], Y[i]);
const toScreen = (x, y) => [
  (x - centreX) * baseX * zoom + width / 2, (centreY - y) * baseY * zoom + height / 2,
];
const isOn = (i) => {
  if (layer === "labelled" && !data.labelled[i]) return false;
  return layer === "all" || layer === "labelled" || category(i).kind === layer;
};

const draw = () => {
  waiting = false;
  const css = getComputedStyle(document.body);
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  const visible = drawPoints();
  if (data.small && visible.length <= MOST_TILES && zoom > 1.5) drawTiles(visible);
  drawNames(css.getPropertyValue("--ink"), css.getPropertyValue("--raised"), visible);
  if (hovered >= 0) drawRing(hovered, css.getPropertyValue("--ink"));
};
const redraw = () => {
  if (!waiting) requestAnimationFrame(draw);
  waiting = true;
};
const drawPoints = () => {
  const crowd = Math.max(1, Math.min(2.4, 90 / Math.sqrt(n)));
  const radius = Math.min(6, (n > 6000 ? 1.5 : 2) * crowd ** 0.5 * zoom ** 0.45);
  const visible = [];
  for (const c of order) {
    const discs = new Path2D(), rings = new Path2D();
    for (const i of rowsOf[c]) {
      const [x, y] = onScreen(i);
      if (!isOn(i) || x < -20 || y < -20 || x > width + 20 || y > height + 20) continue;
      visible.push(i);
      const path = data.unsure[i] ? rings : discs;
      path.moveTo(x + radius, y);
      path.arc(x, y, radius, 0, 7);
    }
    pen.globalAlpha = spot >= 0 && spot !== c ? 0.08 : 0.85;
    pen.fillStyle = pen.strokeStyle = colour(c);
    pen.lineWidth = Math.max(1, 0.4 * radius);
    pen.fill(discs);
    pen.stroke(rings);
  }
  pen.globalAlpha = 1;
  return visible;
};
const sheetImage = (sheet) => {
  if (!sheets.has(sheet)) {
    const probe = make("span", `tile s${sheet}`);
    probe.hidden = true;
    document.body.append(probe);
    const image = new Image();
    image.onload = redraw;
    image.src = getComputedStyle(probe).backgroundImage.slice(5, -2);
    probe.remove();
    sheets.set(sheet, image);
  }
  return sheets.get(sheet);
};
const drawMark = (x, y) => {
  const css = getComputedStyle(document.body);
  pen.beginPath();
  pen.arc(x, y, 7, 0, 7);
  pen.fillStyle = css.getPropertyValue("--ink");
  pen.fill();
  pen.font = `700 11px ${css.fontFamily}`;
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  pen.fillStyle = css.getPropertyValue("--paper");
  pen.fillText("?", x, y);
};
const drawTiles = (visible) => {
  const side = Math.max(26, Math.min(64, 16 * zoom ** 0.6));
  for (const i of visible) {
    if (spot >= 0 && data.category[i] !== spot) continue;
    const at = place(data.small, i);
    const image = sheetImage(at.sheet);
    if (!image.complete || !image.naturalWidth) continue;
    const [x, y] = onScreen(i);
    const s = data.small.size;
    pen.fillStyle = colour(data.category[i]);
    pen.fillRect(x - side / 2 - 2, y - side / 2 - 2, side + 4, side + 4);
    pen.drawImage(image, at.column * s, at.row * s, s, s, x - side / 2, y - side / 2, side, side);
    if (data.unsure[i]) drawMark(x + side / 2 - 5, y - side / 2 + 5);
  }
};
// How many points are in each square of the screen: a name is put where few of them are.
const countPoints = (visible) => {
  const columns = Math.ceil(width / CELL) + 1;
  const counts = new Map();
  for (const i of visible) {
    const [x, y] = onScreen(i);
    const key = Math.floor(y / CELL) * columns + Math.floor(x / CELL);
    counts.set(key, (counts.get(key) || 0) + 1);
  }
  return ([left, top, right, bottom]) => {
    let covered = 0;
    for (let row = Math.floor(top / CELL); row <= Math.floor(bottom / CELL); row++)
      for (let column = Math.floor(left / CELL); column <= Math.floor(right / CELL); column++)
        covered += counts.get(row * columns + column) || 0;
    return covered;
  };
};
const overlap = (a, b) => a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];
// Places for a name around the middle of its category, the nearest first.
const placesFor = (x, y, half, reach) => [
  [x, y - reach], [x, y + reach], [x + reach + half, y], [x - reach - half, y],
  [x, y - 2 * reach], [x, y + 2 * reach], [x, y],
].map(([cx, cy]) => {
  const left = Math.max(2 + half, Math.min(width - half - 2, cx));
  return [left - half, cy - 10, left + half, cy + 10];
});
const drawNames = (ink, halo, visible) => {
  const taken = [];
  const covered = countPoints(visible);
  pen.font = `600 12px ${getComputedStyle(document.body).fontFamily}`;
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  pen.lineJoin = "round";
  for (const c of [...order].reverse()) {
    if (!rowsOf[c].length || (spot >= 0 && spot !== c)) continue;
    if (["novel", "known"].includes(layer) && data.categories[c].kind !== layer) continue;
    const name = data.categories[c].name;
    const short = name.length > 26 ? `${name.slice(0, 25)}…` : name;
    const [x, y] = toScreen(...anchors[c]);
    if (x < 0 || y < 0 || x > width || y > height) continue;
    const half = pen.measureText(short).width / 2 + 5;
    let best = null, least = Infinity;
    for (const [place, box] of placesFor(x, y, half, 20).entries()) {
      if (box[1] < 0 || box[3] > height || taken.some((other) => overlap(box, other))) continue;
      const cost = covered(box) + place;
      if (cost < least) [best, least] = [box, cost];
    }
    if (!best) continue;
    taken.push(best);
    const [left, top, right] = best;
    pen.strokeStyle = halo;
    pen.globalAlpha = 0.85;
    pen.lineWidth = 4;
    pen.strokeText(short, (left + right) / 2, top + 10);
    pen.globalAlpha = 1;
    pen.fillStyle = ink;
    pen.fillText(short, (left + right) / 2, top + 10);
  }
};
const drawRing = (i, ink) => {
  const [x, y] = onScreen(i);
  pen.beginPath();
  pen.arc(x, y, 8, 0, 7);
  pen.strokeStyle = ink;
  pen.lineWidth = 2;
  pen.stroke();
};

const resize = () => {
  width = canvas.clientWidth;
  height = canvas.clientHeight;
  ratio = devicePixelRatio || 1;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  // The map is wider than high; in a tall frame it is rotated.
  [X, Y] = height > width ? [data.y, data.x] : [data.x, data.y];
  anchors = data.categories.map((_, c) => anchorOf(c));
  // Both axes fill the frame. What counts is who is near whom, which a mild stretch does not change.
  const fitX = (width - 2 * MARGIN) / span(X), fitY = (height - 2 * MARGIN) / span(Y);
  baseX = Math.min(fitX, MOST_STRETCH * fitY);
  baseY = Math.min(fitY, MOST_STRETCH * fitX);
  draw();
};
const setZoom = (value, x = width / 2, y = height / 2) => {
  const next = Math.max(1, Math.min(60, value));
  const shift = 1 / zoom - 1 / next;
  centreX += ((x - width / 2) * shift) / baseX;
  centreY -= ((y - height / 2) * shift) / baseY;
  zoom = next;
  if (zoom === 1) centreX = centreY = EXTENT / 2;
  canvas.style.touchAction = zoom > 1.01 ? "none" : "pan-y";
  redraw();
};
const pan = (dx, dy) => {
  if (zoom === 1) return;
  centreX = Math.max(0, Math.min(EXTENT, centreX - dx / (baseX * zoom)));
  centreY = Math.max(0, Math.min(EXTENT, centreY + dy / (baseY * zoom)));
  redraw();
};

const nearest = (x, y, reach) => {
  let best = -1, least = reach * reach;
  for (let i = 0; i < n; i++) {
    if (!isOn(i) || (spot >= 0 && data.category[i] !== spot)) continue;
    const [px, py] = onScreen(i);
    const distance = (px - x) ** 2 + (py - y) ** 2;
    if (distance < least) [best, least] = [i, distance];
  }
  return best;
};
const hover = (i, pinned) => {
  hovered = i;
  tip.hidden = i < 0;
  tip.classList.toggle("pinned", pinned);
  canvas.style.cursor = i < 0 ? "" : "pointer";
  if (i >= 0) {
    tip.replaceChildren();
    if (data.small) tip.append(makeTile(i, true));
    const name = make("b");
    name.append(make("bdi", "", category(i).name));
    const said = data.text ? data.text[i].slice(0, 140) : data.id[i];
    const how = data.labelled[i] ? "labelled" : `confidence ${confidence(i)}`;
    tip.append(name, make("bdi", data.text ? "" : "id", said), make("p", "hint", how));
    const [x, y] = onScreen(i);
    const { offsetWidth: w, offsetHeight: h } = tip;
    const left = x + 16 + w < width ? x + 16 : Math.max(4, x - w - 16);
    tip.style.left = `${Math.min(left, Math.max(4, width - w - 4))}px`;
    tip.style.top = `${Math.max(4, Math.min(height - h - 4, y - h / 2))}px`;
  }
  redraw();
};
tip.addEventListener("click", () => hovered >= 0 && view(hovered));

const pointers = new Map();
let moved = 0, gap = 0;
const position = (event) => {
  const box = canvas.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
};
const spread = () => {
  const [[ax, ay], [bx, by]] = [...pointers.values()];
  return [Math.hypot(ax - bx, ay - by), (ax + bx) / 2, (ay + by) / 2];
};
canvas.addEventListener("pointerdown", (event) => {
  pointers.set(event.pointerId, position(event));
  canvas.setPointerCapture(event.pointerId);
  moved = 0;
  if (pointers.size === 2) gap = spread()[0];
});
canvas.addEventListener("pointermove", (event) => {
  const [x, y] = position(event);
  const before = pointers.get(event.pointerId);
  if (!before) {
    if (event.pointerType === "mouse") hover(nearest(x, y, 18), false);
    return;
  }
  pointers.set(event.pointerId, [x, y]);
  moved += Math.hypot(x - before[0], y - before[1]);
  if (pointers.size === 2) {
    const [distance, cx, cy] = spread();
    setZoom((zoom * distance) / Math.max(1, gap), cx, cy);
    gap = distance;
  } else if (moved > 4) {
    canvas.classList.add("held");
    hover(-1, false);
    pan(x - before[0], y - before[1]);
  }
});
const release = (event) => {
  const isTap = pointers.size === 1 && moved <= 6 && event.type === "pointerup";
  pointers.delete(event.pointerId);
  canvas.classList.remove("held");
  if (!isTap) return;
  const i = nearest(...position(event), event.pointerType === "mouse" ? 18 : 32);
  if (i >= 0 && event.pointerType === "mouse") view(i);
  else hover(i, true);
};
listen([canvas], "pointerup", release);
listen([canvas], "pointercancel", release);
canvas.addEventListener("pointerleave", (event) => {
  if (event.pointerType === "mouse") hover(-1, false);
});
// The wheel scrolls the page until the map has been clicked.
canvas.addEventListener("wheel", (event) => {
  if (!event.ctrlKey && document.activeElement !== canvas) return;
  event.preventDefault();
  hover(-1, false);
  setZoom(zoom * Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0018)), ...position(event));
}, { passive: false });
canvas.addEventListener("dblclick", (event) => setZoom(zoom * 2, ...position(event)));
canvas.addEventListener("keydown", (event) => {
  const keys = {
    ArrowLeft: () => pan(60, 0), ArrowRight: () => pan(-60, 0),
    ArrowUp: () => pan(0, 60), ArrowDown: () => pan(0, -60),
    "+": () => setZoom(zoom * 1.4), "=": () => setZoom(zoom * 1.4),
    "-": () => setZoom(zoom / 1.4), "0": () => setZoom(1),
  };
  if (!keys[event.key] || (zoom === 1 && event.key.startsWith("Arrow"))) return;
  event.preventDefault();
  hover(-1, false);
  keys[event.key]();
});
listen($$("[data-zoom]"), "click", (event) => {
  setZoom(zoom * Number(event.currentTarget.dataset.zoom));
});
listen($$("[data-layer]"), "click", (event) => {
  press(event.currentTarget);
  layer = event.currentTarget.dataset.layer;
  hover(-1, false);
});
spotlight = (code, scroll) => {
  spot = code;
  $("#spot").value = String(code);
  hover(-1, false);
  setZoom(1);
  if (scroll) $("#map").scrollIntoView();
};
$("#spot").addEventListener("change", (event) => spotlight(Number(event.target.value), false));
dark.addEventListener("change", redraw);
resize();
new ResizeObserver(resize).observe(canvas);
