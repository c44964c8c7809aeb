// A sentence, and an arc from its pronoun to each word that the pronoun looks at. The words are running text with the
// role of buttons: real buttons would be boxes in a row, which break "didn't," apart and turn mixed scripts around.

const ARC = 0.005; // weights up to it have no arc
const NUMBER = 0.01; // weights below it are not written under their word
const LABEL = 20; // CSS pixels: height of a row of numbers, as in the style sheet
const PHONE = 600; // narrower than this is drawn smaller, as in the style sheet
const LANES = 4; // arcs to lines further off share so many lanes beside the text
const CARRIES = 24; // a longer word may break over lines, so it can't hold a line's room open

export default function ({ data, parentElement, setTriggerValue }) {
  const view = renewedView(parentElement);
  const find = (name) => parentElement.querySelector(`.${name}`);
  for (const name of ["arcs", "name", "stage", "drawing", "text", "numbers", "tip"]) view[name] = find(name);
  Object.assign(view, { data, send: setTriggerValue, theme: dress(view.arcs) });
  const typed = JSON.stringify([data.words, data.gaps]);
  if (view.typed !== typed || !view.text.hasChildNodes()) {
    Object.assign(view, { typed, hovered: null, focused: null, stop: 0 });
    build(view);
  }
  refresh(view);
  draw(view);
  listen(view);
  return () => view.controller.abort();
}

function build(view) {
  const { words, gaps } = view.data;
  view.words = words.map((word, index) => {
    const element = makeElement("span", "word", word);
    element.setAttribute("role", "button");
    element.dataset.index = index;
    return element;
  });
  view.text.replaceChildren(...view.words.flatMap((element, index) => [gaps[index], element]));
  for (const group of view.drawing.children) group.replaceChildren();
  view.paths = new Map();
}

// What words are and are called, which changes with the weights, the candidates and the theme.
function refresh(view) {
  const { data } = view;
  view.owner = new Map(data.candidates.flatMap((group, i) => group.map((word) => [word, i])));
  view.hidden = new Set(data.masked);
  const different = new Set(data.highlight);
  view.arcs.classList.toggle("pickable", data.pickable);
  view.name.textContent = data.label;
  view.name.hidden = !data.label;
  view.text.setAttribute("aria-label", `Words: arrow keys move${data.pickable ? ", Enter picks" : ""}`);
  view.words.forEach((element, index) => {
    element.classList.toggle("pronoun", index === data.pronoun);
    element.classList.toggle("candidate", view.owner.has(index));
    element.classList.toggle("masked", view.hidden.has(index));
    element.classList.toggle("different", different.has(index));
    element.tabIndex = index === view.stop ? 0 : -1;
    element.title = view.hidden.has(index) ? "may not be seen from here" : "";
    element.setAttribute("aria-label", [data.words[index], ...facts(view, index)].join(", "));
    element.setAttribute("aria-disabled", !data.pickable);
    if (different.has(index)) element.setAttribute("aria-description", "differs from the other sentence");
    else element.removeAttribute("aria-description");
  });
}

function written(weight) {
  if (weight >= 0.0995) return weight.toFixed(2);
  return weight >= 0.0005 ? weight.toFixed(3) : weight > 0 ? "<0.001" : "0";
}

// What there is to say about a word, for the tip and for screen readers.
function facts(view, index) {
  const { data } = view;
  const said = [];
  const owner = view.owner.get(index);
  if (index === data.pronoun) said.push("the word that looks");
  if (owner !== undefined) {
    const name = data.names?.[owner] ?? data.candidates[owner].map((word) => data.words[word]).join(" ");
    said.push(`candidate ${owner + 1}${name === data.words[index] ? "" : ` (${name})`}`);
    if (owner === data.answer) said.push("the right answer");
  }
  const weight = `weight ${index === data.pronoun ? "on itself " : ""}${written(data.weights[index])}`;
  said.push(view.hidden.has(index) ? "may not be seen from here" : weight);
  return said;
}

// ---- Colours -------------------------------------------------------------------------------------------------------

function colourOf(view, index) {
  const owner = view.owner.get(index);
  return owner === undefined ? neutral(view) : candidateColour(view, owner);
}

function candidateColour(view, owner) {
  const colours = PALETTE[view.theme].candidates;
  return colours[owner % colours.length];
}

// The colour of weights, half way to grey: candidates stand out, and their first colour is a blue too.
function neutral(view) {
  const grey = [125, 128, 138];
  return css(weightColour(view.theme, 0.45).map((part, i) => Math.round((part + grey[i]) / 2)));
}

// ---- Where everything goes -----------------------------------------------------------------------------------------

function draw(view) {
  view.width = view.stage.clientWidth;
  if (!view.width) return;
  for (const element of view.text.querySelectorAll(".first")) element.classList.remove("first");
  view.arcs.classList.remove("margins");
  measure(view);
  if (view.lines.length > 2) {
    view.arcs.classList.add("margins");
    measure(view);
  }
  makeNumbers(view);
  const arcs = planArcs(view);
  makeRoom(view, arcs);
  measure(view);
  placeNumbers(view);
  drawGrounds(view);
  drawArcs(view, arcs);
  paint(view);
}

// The words' boxes from the stage's corner, and the lines that they stand on.
function measure(view) {
  const stage = view.stage.getBoundingClientRect();
  const lines = [];
  view.boxes = view.words.map((element, index) => {
    const { left, right, top, bottom } = element.getClientRects()[0];
    const box = { left: left - stage.left, right: right - stage.left, top: top - stage.top, bottom: bottom - stage.top };
    box.middle = (box.left + box.right) / 2;
    const current = lines.at(-1);
    if (!current || Math.abs(box.top - current.top) > 0.6 * (bottom - top)) {
      lines.push({ words: [], rows: view.lines?.[lines.length]?.rows ?? 0, top: box.top, bottom: box.bottom });
    }
    lines.at(-1).words.push(index);
    box.line = lines.length - 1;
    return box;
  });
  view.lines = lines;
}

// The numbers under the words, each in the first row where it touches none to its left.
function makeNumbers(view) {
  view.labels = view.words.map((_, index) => numberOf(view, index));
  view.numbers.replaceChildren(...view.labels.filter(Boolean));
  const widths = view.labels.map((label) => label?.offsetWidth);
  for (const line of view.lines) {
    const ends = [];
    const shown = line.words.filter((index) => view.labels[index]);
    for (const index of shown.sort((a, b) => view.boxes[a].middle - view.boxes[b].middle)) {
      const start = view.boxes[index].middle - widths[index] / 2;
      const left = Math.max(0, Math.min(start, view.width - widths[index]));
      const free = ends.findIndex((end) => end + 6 <= left);
      const row = free < 0 ? ends.length : free;
      ends[row] = left + widths[index];
      Object.assign(view.labels[index], { left, row });
    }
    line.rows = ends.length;
  }
}

function numberOf(view, index) {
  const owner = view.owner.get(index);
  const opens = owner !== undefined && view.owner.get(index - 1) !== owner;
  const weight = view.data.weights[index];
  if (!opens && (weight < NUMBER || view.hidden.has(index))) return null;
  const label = makeElement("div", owner === undefined ? "number" : "number of-candidate");
  if (opens) {
    const badge = makeElement("span", "badge", owner + 1);
    badge.style.background = candidateColour(view, owner);
    badge.style.color = luminance(rgbOf(candidateColour(view, owner))) > 0.18 ? "#16181d" : "#ffffff";
    label.append(badge);
  }
  if (weight >= NUMBER) label.append(makeElement("span", "value", weight.toFixed(2)));
  if (opens && owner === view.data.answer) label.append(makeElement("span", "check", "✓"));
  return label;
}

function placeNumbers(view) {
  view.labels.forEach((label, index) => {
    if (!label) return;
    label.style.left = `${label.left}px`;
    label.style.top = `${view.boxes[index].bottom + 3 + label.row * LABEL}px`;
  });
}

// Which words get an arc, how wide it is, and how it travels: over its own line; through the one gap between two lines
// ("near"); or through two gaps and the margin beside the text ("far"), so that no arc crosses a line of text.
function planArcs(view) {
  const { weights, pronoun } = view.data;
  const home = view.boxes[pronoun];
  const scale = view.width < PHONE ? 0.65 : 1;
  const used = { left: 0, right: 0 };
  const drawn = weights.flatMap((weight, word) => (weight > ARC && !view.hidden.has(word) ? [{ word, weight }] : []));
  for (const arc of drawn.sort((a, b) => b.weight - a.weight)) {
    const box = view.boxes[arc.word];
    const apart = box.line - home.line;
    arc.width = scale * (1.5 + 12 * arc.weight);
    arc.way = arc.word === pronoun ? "self" : apart === 0 ? "same" : Math.abs(apart) === 1 ? "near" : "far";
    arc.up = apart < 0;
    if (arc.way !== "far") continue;
    const side = home.middle + box.middle < view.width ? "left" : "right";
    const step = view.width < PHONE ? 3 : 6;
    const lane = step * (1 + (used[side]++ % LANES));
    arc.margin = side === "left" ? lane : view.width - lane;
  }
  return drawn;
}

// Open the room that the arcs need above each line.
function makeRoom(view, arcs) {
  const above = view.lines.map(() => 6);
  const need = (gap, height) => (above[gap] = Math.max(above[gap], Math.round(height)));
  const home = view.boxes[view.data.pronoun];
  for (const { word, width, way, up, margin } of arcs) {
    const box = view.boxes[word];
    if (way === "self") need(home.line, 30);
    if (way === "same") need(home.line, heightOf(home.middle - box.middle) + width / 2 + 2);
    const [leaves, arrives] = up ? [home.line, box.line + 1] : [home.line + 1, box.line];
    if (way === "near") need(leaves, bendOf(home.middle - box.middle) + width);
    if (way === "far") need(leaves, bendOf(home.middle - margin) + width);
    if (way === "far") need(arrives, bendOf(box.middle - margin) + width);
  }
  view.lines.forEach((line, place) => {
    const post = line.words.find((index) => view.data.words[index].length <= CARRIES);
    const numbers = place ? view.lines[place - 1].rows * LABEL + 4 : 0;
    if (post === undefined) return;
    view.words[post].classList.add("first");
    view.words[post].style.setProperty("--room", `${above[place] + numbers}px`);
  });
  view.text.style.setProperty("--below", `${view.lines.at(-1).rows * LABEL + 8}px`);
}

const heightOf = (across) => 5 + 4.2 * Math.sqrt(Math.abs(across)); // of an arc over its own line
const bendOf = (across) => 16 + 1.6 * Math.sqrt(Math.abs(across)); // of the gap that an arc to another line bends in

// ---- Drawing -------------------------------------------------------------------------------------------------------

function makeShape(tag, className, attributes) {
  const shape = document.createElementNS("http://www.w3.org/2000/svg", tag);
  shape.setAttribute("class", className);
  for (const [name, value] of Object.entries(attributes)) shape.setAttribute(name, value);
  return shape;
}

// A tinted ground and a line under each run of a candidate's words.
function drawGrounds(view) {
  const shapes = [];
  view.data.candidates.forEach((words, owner) => {
    const colour = candidateColour(view, owner);
    for (const { left, right, top, bottom } of runsOf(view, words)) {
      const [x, width] = [left - 2, right - left + 4];
      shapes.push(makeShape("rect", "ground", { x, y: top + 3, width, height: bottom - top - 3, rx: 4, fill: colour }));
      shapes.push(makeShape("rect", "underline", { x, y: bottom - 2, width, height: 4, rx: 2, fill: colour }));
    }
  });
  view.drawing.querySelector(".grounds").replaceChildren(...shapes);
}

function runsOf(view, words) {
  const runs = [];
  for (const index of words) {
    const box = view.boxes[index];
    const run = runs.at(-1);
    if (run?.last === index - 1 && run.line === box.line) {
      Object.assign(run, { last: index, left: Math.min(run.left, box.left), right: Math.max(run.right, box.right) });
    } else runs.push({ ...box, last: index });
  }
  return runs;
}

// Paths stay with their words, so that widths glide from one head's weights to the next.
function drawArcs(view, arcs) {
  const [others, candidates] = ["others", "candidates"].map((name) => view.drawing.querySelector(`.${name}`));
  const drawn = new Map(arcs.map((arc) => [arc.word, arc]));
  for (const [word, path] of view.paths) if (!drawn.has(word)) path.remove();
  for (const arc of arcs) {
    const path = view.paths.get(arc.word) ?? makeShape("path", "arc", { "data-word": arc.word });
    view.paths.set(arc.word, path);
    const owned = view.owner.has(arc.word);
    const group = owned ? candidates : others;
    if (path.parentNode !== group) group.append(path);
    path.setAttribute("d", pathOf(view, arc));
    path.style.stroke = colourOf(view, arc.word);
    path.style.strokeWidth = `${arc.width.toFixed(2)}px`;
    path.style.strokeOpacity = (owned ? 0.9 : 0.55 + 0.3 * arc.weight).toFixed(2);
  }
}

function pathOf(view, arc) {
  const home = view.boxes[view.data.pronoun];
  const box = view.boxes[arc.word];
  if (arc.way === "self") {
    const [x, y] = [home.middle, home.top - 3];
    return `M${x - 5},${y}C${x - 24},${y - 34} ${x + 24},${y - 34} ${x + 5},${y}`;
  }
  if (arc.way === "same") {
    const start = home.middle + Math.sign(box.middle - home.middle) * Math.min(6, (home.right - home.left) / 4);
    const peak = home.top - (heightOf(home.middle - box.middle) * 4) / 3;
    return `M${start},${home.top - 2}C${start},${peak} ${box.middle},${peak} ${box.middle},${box.top + 3}`;
  }
  const foot = (index) => view.boxes[index].bottom + 5 + (view.labels[index] ? (view.labels[index].row + 1) * LABEL : 0);
  const start = [home.middle, arc.up ? home.top - 2 : foot(view.data.pronoun)];
  const end = [box.middle, arc.up ? foot(arc.word) : box.top + 3];
  if (arc.way === "near") return `M${start}${bend(start, end)}`;
  const [leaves, arrives] = arc.up ? [home.line - 1, box.line + 1] : [home.line + 1, box.line - 1];
  const edge = (line, top) => (top ? view.lines[line].top : view.lines[line].bottom + view.lines[line].rows * LABEL);
  const out = [arc.margin, edge(leaves, !arc.up)];
  const back = [arc.margin, edge(arrives, arc.up)];
  return `M${start}${bend(start, out)}L${back}${bend(back, end)}`;
}

// A curve that leaves and arrives upright.
function bend([x0, y0], [x1, y1]) {
  const half = 0.6 * (y1 - y0);
  return `C${x0},${y0 + half} ${x1},${y1 - half} ${x1},${y1}`;
}

// ---- Pointer and keys ----------------------------------------------------------------------------------------------

// All that depends on the word that is pointed at: its arc stands out, its tip says what there is to know.
function paint(view) {
  const word = view.hovered ?? view.focused;
  view.drawing.classList.toggle("dimmed", word !== null && Boolean(view.paths.get(word)?.isConnected));
  for (const [index, path] of view.paths) path.classList.toggle("active", index === word);
  const titled = view.hovered !== null && view.hidden.has(word); // the browser shows the word's title
  view.tip.hidden = word === null || titled;
  if (view.tip.hidden) return;
  view.tip.textContent = facts(view, word).join(", ");
  const box = view.boxes[word];
  const left = box.middle - view.tip.offsetWidth / 2;
  view.tip.style.left = `${Math.max(0, Math.min(left, view.width - view.tip.offsetWidth))}px`;
  view.tip.style.top = `${box.bottom + 7}px`;
}

function listen(view) {
  const { text, signal } = view;
  const on = (target, type, handler) => target.addEventListener(type, handler, { signal });
  const point = (places) => {
    Object.assign(view, places);
    if (view.boxes) paint(view);
  };
  on(text, "pointerover", ({ target }) => point({ hovered: indexOf(target) }));
  on(text, "pointerleave", () => point({ hovered: null }));
  on(text, "focusin", ({ target }) => {
    stopAt(view, indexOf(target));
    point({ focused: target.matches(":focus-visible") ? view.stop : null });
  });
  on(text, "focusout", () => point({ focused: null }));
  on(text, "click", ({ target }) => pick(view, indexOf(target)));
  on(text, "keydown", (event) => press(view, event));
  on(document.fonts, "loadingdone", () => draw(view));
  const observer = new ResizeObserver(() => view.stage.clientWidth !== view.width && draw(view));
  observer.observe(view.stage);
  signal.addEventListener("abort", () => observer.disconnect());
}

function indexOf(target) {
  const element = target.closest(".word");
  return element ? Number(element.dataset.index) : null;
}

function stopAt(view, index) {
  view.words[view.stop].tabIndex = -1;
  view.stop = index ?? view.stop;
  view.words[view.stop].tabIndex = 0;
}

function pick(view, index) {
  if (index !== null && view.data.pickable) view.send("pick", index);
}

function press(view, event) {
  if (event.altKey || event.metaKey || event.ctrlKey) return;
  if (event.key === "Enter" || event.key === " ") pick(view, indexOf(event.target));
  else {
    const next = nextWord(view, event.key);
    if (next === null) return;
    view.hovered = null;
    view.words[next].focus({ focusVisible: true });
  }
  event.preventDefault();
  event.stopPropagation(); // the page may have its own meaning for these keys
}

function nextWord(view, key) {
  const last = view.words.length - 1;
  const back = getComputedStyle(view.text).direction === "rtl" ? "ArrowRight" : "ArrowLeft";
  if (key === "Home") return 0;
  if (key === "End") return last;
  if (key === "ArrowLeft" || key === "ArrowRight") {
    return Math.max(0, Math.min(last, view.stop + (key === back ? -1 : 1)));
  }
  if (key !== "ArrowUp" && key !== "ArrowDown") return null;
  const { line, middle } = view.boxes[view.stop];
  const words = view.lines[line + (key === "ArrowUp" ? -1 : 1)]?.words ?? [view.stop];
  const off = (index) => Math.abs(view.boxes[index].middle - middle);
  return words.reduce((best, index) => (off(index) < off(best) ? index : best));
}
