"use strict";
// Texts that people wrote are inserted by textContent only, never as HTML.
(() => {
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
    fact(list, "Confidence", `${data.confidence[i]} %${data.unsure[i] ? " (unsure)" : ""}`);
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
    title.replaceChildren(make("bdi", "", name), ` · ${size.toLocaleString("en")} items${part}`);
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
  window.addEventListener("hashchange", () => {
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

  // ------------------------------------------------------------------ the map
  let spotlight = () => {};
  const canvas = $("#plane canvas");
  if (!canvas || !data.x) return;
  const pen = canvas.getContext("2d");
  const tip = $("#tip");
  const EXTENT = 4095;
  const MOST_TILES = 260;
  const sheets = new Map();
  let width = 0, height = 0, ratio = 1, base = 1, waiting = false;
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
    (x - centreX) * base * zoom + width / 2, (centreY - y) * base * zoom + height / 2,
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
    drawNames(css.getPropertyValue("--ink"), css.getPropertyValue("--raised"));
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
      pen.beginPath();
      for (const i of rowsOf[c]) {
        const [x, y] = onScreen(i);
        if (!isOn(i) || x < -20 || y < -20 || x > width + 20 || y > height + 20) continue;
        visible.push(i);
        pen.moveTo(x + radius, y);
        pen.arc(x, y, radius, 0, 7);
      }
      pen.globalAlpha = spot >= 0 && spot !== c ? 0.08 : 0.85;
      pen.fillStyle = colour(c);
      pen.fill();
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
    }
  };
  const drawNames = (ink, halo) => {
    const taken = [];
    pen.font = `600 12px ${getComputedStyle(document.body).fontFamily}`;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    pen.lineJoin = "round";
    for (const c of [...order].reverse()) {
      if (!rowsOf[c].length || (spot >= 0 && spot !== c)) continue;
      if (["novel", "known"].includes(layer) && data.categories[c].kind !== layer) continue;
      const name = data.categories[c].name;
      const short = name.length > 22 ? `${name.slice(0, 21)}…` : name;
      const [x, y] = toScreen(...anchors[c]);
      const half = pen.measureText(short).width / 2 + 4;
      const box = [x - half, y - 10, x + half, y + 10];
      if (box[0] < 0 || box[2] > width || box[1] < 0 || box[3] > height) continue;
      if (taken.some((t) => t[0] < box[2] && box[0] < t[2] && t[1] < box[3] && box[1] < t[3])) continue;
      taken.push(box);
      pen.strokeStyle = halo;
      pen.globalAlpha = 0.85;
      pen.lineWidth = 4;
      pen.strokeText(short, x, y);
      pen.globalAlpha = 1;
      pen.fillStyle = ink;
      pen.fillText(short, x, y);
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
    base = 0.92 * Math.min(width / span(X), height / span(Y));
    draw();
  };
  const setZoom = (value, x = width / 2, y = height / 2) => {
    const next = Math.max(1, Math.min(60, value));
    const shift = (1 / zoom - 1 / next) / base;
    centreX += (x - width / 2) * shift;
    centreY -= (y - height / 2) * shift;
    zoom = next;
    if (zoom === 1) centreX = centreY = EXTENT / 2;
    canvas.style.touchAction = zoom > 1.01 ? "none" : "pan-y";
    redraw();
  };
  const pan = (dx, dy) => {
    if (zoom === 1) return;
    centreX = Math.max(0, Math.min(EXTENT, centreX - dx / (base * zoom)));
    centreY = Math.max(0, Math.min(EXTENT, centreY + dy / (base * zoom)));
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
      const how = data.labelled[i] ? "labelled" : `confidence ${data.confidence[i]} %`;
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
})();
