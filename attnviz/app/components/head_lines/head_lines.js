// All heads of a layer as lines between two columns of tokens, a colour and a dash a head. All in the browser.

const DASHES = [[], [7, 4], [2, 3], [12, 3, 2, 3]]; // the colours go round once a dash
const SPREAD = 18; // CSS pixels over which the lines of one pair of tokens fan out
const FAINT = 0.15; // of their opacity: what lines keep that the token pointed at has no part in
const CHIPS = 4; // heads written beside a token
const SAID = 6; // weights in the sentence above the columns
const SIDES = ["queries", "keys"];

export default function ({ data, parentElement, setStateValue }) {
  const view = renewedView(parentElement);
  view.strip = parentElement.querySelector(".strip");
  for (const name of ["pills", "line", "content", "left-out"]) view[name] = view.strip.querySelector(`.${name}`);
  view.send = setStateValue;
  listen(view);
  show(view, data);
  return () => view.controller.abort();
}

async function show(view, data) {
  const { signal } = view;
  if (view.data !== data) {
    const bytes = await unpack(data.weights);
    if (signal.aborted) return;
    Object.assign(view, { data, edges: edgesOf(data, new Uint16Array(bytes.buffer)) });
  }
  view.strip.style.forcedColorAdjust = "none"; // where colours are forced, the page's own would not be found
  view.theme = dress(view.strip);
  view.strip.style.forcedColorAdjust = "";
  const tokens = JSON.stringify([data.queries, data.keys]);
  if (view.tokens !== tokens || !view.content.hasChildNodes()) {
    Object.assign(view, { tokens, hovered: null, focused: null, pinned: null, stops: [0, 0], sink: true });
    build(view);
  }
  heed(view);
}

// [query, key, weight, head] of each line, the faintest first, so that none lies under a fainter one.
function edgesOf({ queries, keys }, weights) {
  const edges = [];
  const cells = queries.length * keys.length;
  weights.forEach((value, place) => {
    const cell = place % cells;
    const [query, key] = [Math.floor(cell / keys.length), cell % keys.length];
    if (value) edges.push([query, key, value / 65535, Math.floor(place / cells)]);
  });
  return edges.sort((a, b) => a[2] - b[2]);
}

// Take over which heads Python shows and selects, unless the visitor has chosen since.
function heed(view) {
  const { data } = view;
  const note = (view.note = readNote(data.key, "heads"));
  const all = data.thin.map((_, head) => head);
  if ((note.seen ?? 0) >= view.sent || !view.shown) view.shown = new Set(note.shown ?? all);
  buildPills(view, all);
  refresh(view);
}

// All that depends on which heads are shown, but not on the pointer.
function refresh(view) {
  const { data, edges, shown } = view;
  view.drawn = edges.filter(([, key, , head]) => shown.has(head) && (view.sink || key !== data.first));
  view.strip.querySelectorAll(".pill:not(.plain)").forEach((pill) => {
    pill.setAttribute("aria-pressed", pill.dataset.head === "sink" ? view.sink : shown.has(Number(pill.dataset.head)));
  });
  view.buttons.forEach((column, side) =>
    column.forEach((button, index) => button.setAttribute("aria-label", spokenLabel(view, side, index))),
  );
  const percent = (shares) => `${Math.round((100 * [...shown].reduce((sum, h) => sum + shares[h], 0)) / shown.size)} %`;
  const sink = view.strip.querySelector(".sink-share");
  if (sink) sink.textContent = shown.size ? ` (${percent(data.sink)} of the weight)` : "";
  view["left-out"].textContent = shown.size
    ? `Lines below ${data.least} aren't drawn: ${percent(data.thin)} of the weight of the heads shown.`
    : "No head is shown: choose one above.";
  if (shown.size && !view.sink) view["left-out"].textContent += ` The first token's lines: ${percent(data.sink)} more.`;
  paint(view);
}

// ---- Building ------------------------------------------------------------------------------------------------------

function build(view) {
  const scroller = makeElement("div", "lines");
  const canvas = makeElement("canvas", "canvas");
  const columns = SIDES.map((name, side) => {
    const column = makeElement("div", name);
    column.setAttribute("role", "group");
    const who = side ? "Who is looked at" : "Who looks";
    column.setAttribute("aria-label", `${who}: arrow keys move, Enter pins, Escape unpins`);
    column.append(...view.data[name].map((label, index) => tokenButton(label, side, index)));
    return column;
  });
  const between = makeElement("div", "between");
  between.append(canvas);
  scroller.append(columns[0], between, columns[1]);
  view.content.replaceChildren(scroller);
  view.buttons = columns.map((column) => [...column.children]);
  Object.assign(view, { scroller, canvas });
  moveStops(view);
}

function tokenButton(label, side, index) {
  const button = makeElement("button", "token");
  button.type = "button";
  Object.assign(button.dataset, { side, index });
  const word = makeElement("span", "word");
  const marked = /^[·▁Ġ]./u.test(label);
  if (marked) word.append(makeElement("span", "space", "·"));
  const letters = makeElement("bdi", "", marked ? [...label].slice(1).join("") : label);
  letters.dir = "auto";
  word.append(letters);
  button.append(word, makeElement("span", "chips"));
  return button;
}

function buildPills(view, all) {
  const { selected } = view.note;
  const name = JSON.stringify([all.length, selected, view.theme, view.data.first]);
  if (view.pilled === name && view.pills.hasChildNodes()) return;
  view.pilled = name;
  const pills = all.map((head) => {
    const pill = makePill(head, `H${head}`, sample(view, head));
    pill.classList.toggle("selected", head === selected);
    pill.setAttribute("aria-label", `Head ${head}${head === selected ? ", selected" : ""}`);
    return pill;
  });
  const plain = [makePill("all", "All heads"), makePill("only", `Only H${selected}`)];
  plain.forEach((button) => button.classList.add("plain"));
  view.pills.replaceChildren(...pills, ...plain);
  if (view.data.first === null) return;
  const sink = makePill("sink", "First token's lines");
  sink.append(makeElement("span", "sink-share"));
  view.pills.append(sink);
}

function makePill(head, text, picture = null) {
  const pill = makeElement("button", "pill");
  pill.type = "button";
  pill.dataset.head = head;
  if (picture) pill.append(picture);
  pill.append(makeElement("span", "", text));
  return pill;
}

// A short piece of a head's line.
function sample(view, head) {
  const [svg, line] = ["svg", "line"].map((tag) => document.createElementNS("http://www.w3.org/2000/svg", tag));
  const [, dash] = lookOf(view, head);
  const places = { x1: 0, y1: 5, x2: 26, y2: 5, "stroke-width": 4, "stroke-dasharray": dash.join(" ") };
  for (const [name, value] of Object.entries(places)) line.setAttribute(name, value);
  line.style.stroke = css(rgbOf(lookOf(view, head)[0]));
  svg.setAttribute("class", "sample");
  svg.setAttribute("aria-hidden", "true");
  svg.append(line);
  return svg;
}

// The colour and the dash of a head.
function lookOf(view, head) {
  const colours = PALETTE[view.theme].candidates;
  return [colours[head % colours.length], DASHES[Math.floor(head / colours.length) % DASHES.length]];
}

// ---- Numbers -------------------------------------------------------------------------------------------------------

// The lines of a token, the strongest first.
const linesOf = (view, side, index) => view.drawn.filter((edge) => edge[side] === index).reverse();

const bare = (label) => label.replace(/^[·▁Ġ]/u, "") || label;

// What a token's heads do, as pieces of text; names of tokens are marked, since they may run the other way.
function sentence(view, side, index) {
  const lines = linesOf(view, side, index);
  const names = view.data[SIDES[1 - side]];
  const pieces = lines.slice(0, SAID).flatMap((edge, place) => [
    { text: `${place ? "; " : ""}H${edge[3]} ` },
    { name: bare(names[edge[1 - side]]) },
    { text: ` ${edge[2].toFixed(2)}` },
  ]);
  if (lines.length > SAID) pieces.push({ text: `; ${lines.length - SAID} more` });
  return pieces.length ? pieces : [{ text: `no line of ${view.data.least} or more` }];
}

const verb = (side) => (side ? "is looked at by" : "looks at");

function spokenLabel(view, side, index) {
  const said = sentence(view, side, index).map(({ name, text }) => name ?? text);
  return `${bare(view.data[SIDES[side]][index])}, token ${view.data.start + index}, ${verb(side)}: ${said.join("")}`;
}

function tell(view, active) {
  if (!active) {
    view.line.textContent = "Point at a token, or walk with Tab and the arrow keys, to see its lines alone. Click to keep it.";
    return;
  }
  const [side, index] = active;
  const subject = makeElement("bdi", "subject", bare(view.data[SIDES[side]][index]));
  view.line.replaceChildren(subject, ` (token ${view.data.start + index}) ${verb(side)} `);
  for (const { name, text } of sentence(view, side, index)) {
    view.line.append(name === undefined ? text : makeElement("bdi", "", name));
  }
  if (view.pinned) view.line.append(" (pinned)");
}

// ---- Painting: the only work while the pointer moves ---------------------------------------------------------------

function paint(view) {
  const active = view.pinned ?? view.hovered ?? view.focused;
  const lines = active ? linesOf(view, ...active) : [];
  drawHeads(view, active);
  writeChips(view, active, lines);
  tell(view, active);
  for (const [state, place] of [["active", active], ["pinned", view.pinned]]) {
    view.strip.querySelector(`.token.${state}`)?.classList.remove(state);
    if (place) view.buttons[place[0]][place[1]].classList.add(state);
  }
  view.buttons.flat().forEach((button) => button.setAttribute("aria-pressed", button.classList.contains("pinned")));
}

function drawHeads(view, active) {
  drawLines({ ...view, edges: [] }, null); // gives the canvas its size and wipes it
  const width = view.canvas.parentElement.clientWidth;
  if (!width || !view.scroller.clientHeight) return;
  const pen = view.canvas.getContext("2d");
  const places = [...view.shown].sort((a, b) => a - b);
  const step = Math.min(3, SPREAD / places.length) / LINE_HEIGHT;
  const shifts = new Map(places.map((head, place) => [head, (place - (places.length - 1) / 2) * step]));
  const inSight = sight(view.scroller);
  for (const mine of active ? [false, true] : [true]) {
    for (const edge of view.drawn) {
      if ((!active || edge[active[0]] === active[1]) !== mine || !inSight(edge)) continue;
      const [query, key, weight, head] = edge;
      const [colour, dash] = lookOf(view, head);
      pen.strokeStyle = `rgba(${rgbOf(colour).join(", ")}, ${mine ? 1 : FAINT})`; // times the opacity of its weight
      pen.setLineDash(dash);
      drawEdge(pen, [query + shifts.get(head), key + shifts.get(head), 0.15 + 0.85 * weight], width);
    }
  }
}

// Whether a line passes through what is scrolled into sight.
function sight({ scrollTop, clientHeight }) {
  const [top, bottom] = [scrollTop / LINE_HEIGHT - 1, (scrollTop + clientHeight) / LINE_HEIGHT];
  return ([query, key]) => Math.max(query, key) >= top && Math.min(query, key) <= bottom;
}

// Beside each token at the other end of the active one's lines: which heads, and how much.
function writeChips(view, active, lines) {
  view.written?.forEach((chips) => chips.replaceChildren());
  const ends = new Map();
  for (const edge of lines) ends.set(edge[1 - active[0]], [...(ends.get(edge[1 - active[0]]) ?? []), edge]);
  view.written = [...ends].map(([index, edges]) => {
    const chips = view.buttons[1 - active[0]][index].lastChild;
    const rest = edges.length > CHIPS ? [makeElement("span", "more", `+${edges.length - CHIPS}`)] : [];
    chips.append(...edges.slice(0, CHIPS).map((edge) => chipOf(view, edge)), ...rest);
    return chips;
  });
}

function chipOf(view, [, , weight, head]) {
  const chip = makeElement("span", "chip");
  const bar = makeElement("span", "share");
  bar.style.width = `${Math.round(4 + 36 * weight)}px`;
  bar.style.background = lookOf(view, head)[0];
  chip.append(bar, `H${head} ${weight.toFixed(2)}`);
  return chip;
}

// ---- Pointer and keys ----------------------------------------------------------------------------------------------

function listen(view) {
  const { content, strip, signal } = view;
  const on = (target, type, handler, capture = false) => target.addEventListener(type, handler, { signal, capture });
  const again = () => view.drawn && paint(view);
  on(window, "attnviz-note", ({ detail }) => view.data?.key === detail && heed(view));
  on(strip.querySelector(".pills"), "click", ({ target }) => toggle(view, target.closest(".pill")));
  on(content, "pointerover", ({ target }) => move(view, { hovered: placeOf(target) }));
  on(content, "pointerleave", () => move(view, { hovered: null }));
  on(content, "focusin", ({ target }) => {
    const place = placeOf(target);
    if (place) view.stops[place[0]] = place[1];
    moveStops(view);
    move(view, { focused: target.matches(":focus-visible") ? place : null });
  });
  on(content, "focusout", () => move(view, { focused: null }));
  on(content, "click", ({ target }) => {
    const place = placeOf(target);
    if (place) move(view, { pinned: same(place, view.pinned) ? null : place });
  });
  on(content, "keydown", (event) => press(view, event));
  on(content, "scroll", again, true);
  const observer = new ResizeObserver(again);
  observer.observe(content);
  signal.addEventListener("abort", () => observer.disconnect());
}

const same = (one, other) => String(one) === String(other);

// [side, index] of the token under the pointer or in focus.
function placeOf(target) {
  const button = target.closest?.(".token");
  return button ? [Number(button.dataset.side), Number(button.dataset.index)] : null;
}

function move(view, places) {
  if (!view.drawn || Object.entries(places).every(([kind, place]) => same(view[kind], place))) return;
  Object.assign(view, places);
  paint(view);
}

function toggle(view, pill) {
  if (!pill) return;
  const name = pill.dataset.head;
  if (name === "sink") view.sink = !view.sink;
  else {
    const all = view.data.thin.map((_, head) => head);
    const head = Number(name);
    if (name === "all") view.shown = new Set(all);
    else if (name === "only") view.shown = new Set([view.note.selected]);
    else if (!view.shown.delete(head)) view.shown.add(head);
    const value = view.shown.size === all.length ? null : [...view.shown].sort((a, b) => a - b);
    view.send("shown", { value, at: nextStamp(view, view.note.seen) });
  }
  refresh(view);
}

function moveStops(view) {
  view.buttons.forEach((column, side) =>
    column.forEach((button, index) => (button.tabIndex = index === view.stops[side] ? 0 : -1)),
  );
}

function press(view, event) {
  const place = placeOf(event.target);
  if (!place || event.altKey || event.metaKey || event.ctrlKey) return;
  if (event.key === "Escape" && view.pinned) move(view, { pinned: null });
  else {
    const next = nextPlace(view, event.key, place);
    if (!next) return;
    view.hovered = null;
    view.buttons[next[0]][next[1]].focus({ focusVisible: true });
  }
  event.preventDefault();
  event.stopPropagation(); // the page may have its own meaning for these keys
}

function nextPlace(view, key, [side, index]) {
  const last = view.buttons[side].length - 1;
  if (key === "ArrowUp" || key === "ArrowDown") {
    return [side, Math.max(0, Math.min(last, index + (key === "ArrowUp" ? -1 : 1)))];
  }
  if (key === "Home" || key === "End") return [side, key === "Home" ? 0 : last];
  if (key !== "ArrowLeft" && key !== "ArrowRight") return null;
  const other = key === "ArrowLeft" ? 0 : 1;
  return [other, Math.min(index, view.buttons[other].length - 1)];
}
