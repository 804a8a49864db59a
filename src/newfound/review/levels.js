"use strict";
// Coarser and finer, and how far to trust the run: the two places above the cards.
// review.js calls showLevels and showTrust with what the server says.

const showLevels = (levels, choose) => {
  const root = $("#granularity");
  root.hidden = !levels;
  const key = JSON.stringify(levels);
  if (!levels || root.shown === key) return;
  root.shown = key;
  const { steps } = levels;
  const low = steps[0].k;
  const high = steps[steps.length - 1].k;
  const slider = Object.assign(make("input"), { type: "range", min: low, max: high, step: 1, id: "level" });
  slider.value = levels.chosen;
  slider.setAttribute("aria-label", "Number of categories, known and new");
  slider.setAttribute("aria-describedby", "level-words");
  slider.setAttribute("aria-keyshortcuts", "g");
  const words = Object.assign(make("p", "hint"), { id: "level-words" });
  words.setAttribute("role", "status");
  const use = Object.assign(make("button", "quiet"), { type: "button", id: "level-use" });
  const title = make("b");
  const slide = () => {
    const step = steps.find(({ k }) => k === Number(slider.value));
    const note = step.counted ? ", as counted" : step.inside ? ", in the 90 % interval" : "";
    title.textContent = `${step.k} categories, ${step.novel} of them new${note}`;
    slider.setAttribute("aria-valuetext", title.textContent);
    words.textContent = step.words;
    use.textContent = step.k === levels.chosen ? "This is the level" : `Use the level of ${step.k}`;
    use.disabled = step.k === levels.chosen;
  };
  const take = () => { if (!use.disabled) choose(Number(slider.value)); };
  slider.addEventListener("input", slide);
  slider.addEventListener("keydown", (event) => {
    if (event.key === "Enter") { event.preventDefault(); take(); }
    if (event.key === "Escape") { slider.value = levels.chosen; slide(); slider.blur(); }
  });
  use.addEventListener("click", take);
  const track = make("div", "levels-track");
  track.setAttribute("aria-hidden", "true");
  const place = (k) => `${(100 * (k - low)) / Math.max(1, high - low)}%`;
  const inside = steps.filter((step) => step.inside).map(({ k }) => k);
  if (inside.length) {
    const band = make("span", "band");
    band.style.left = place(inside[0]);
    band.style.width = place(low + inside[inside.length - 1] - inside[0]);
    track.append(band);
  }
  const mark = make("span", "mark");
  mark.style.left = place(levels.counted);
  track.append(mark);
  const box = make("div", "levels-slider");
  const ends = make("p", "ends");
  ends.append(make("span", "", `${low} (coarse)`), use, make("span", "", `${high} (fine)`));
  box.append(title, track, slider, ends, words);
  const details = make("details", "levels");
  details.open = Boolean(root.querySelector("details[open]"));
  details.append(make("summary", "", `Coarser or finer: ${levels.chosen} categories`), box);
  slide();
  root.replaceChildren(details);
};
const openLevels = () => {
  const details = $("#granularity details");
  if (!details) return;
  details.open = true;
  $("#level").focus();
};

const showTrust = (trust) => {
  const root = $("#trust");
  root.hidden = !trust;
  if (!trust) return;
  const details = make("details", "verdict");
  const summary = make("summary", "", "How far to trust this run: ");
  summary.append(make("b", `word-${trust.word.replace("'", "")}`, trust.word));
  const list = (lines) => { const box = make("ul"); box.append(...lines.map((line) => make("li", "", line))); return box; };
  const more = (words, lines) => { const box = make("details"); box.append(make("summary", "", words), list(lines)); return lines.length ? [box] : []; };
  details.append(
    summary,
    list([...trust.reasons, trust.confidence].filter(Boolean)),
    ...more("Known categories that were not found again when hidden", trust.classes.map(([name, words]) => `${name}: ${words}`)),
    ...more("New categories that did not come back with other seeds or rows", trust.unstable.map(([name, value]) => `${name}: Jaccard index ${value}`)),
  );
  root.replaceChildren(details);
};
