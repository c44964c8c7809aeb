// A sentence as tokens: pointing at one shades the others by its weights, or draws them as lines. All in the browser.

const SHOWN = 5; // how many weights are written as numbers
const FAINT = 0.005; // weights below it are never written under a token: they would read 0.00
const SHADES = 256;
const DIRECTIONS = ["looks at", "is looked at by"];
const FOREIGN = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/u; // scripts that run from right to left

export default function ({ data, parentElement, setStateValue }) {
  const view = renewedView(parentElement);
  view.strip = parentElement.querySelector(".strip");
  view.content = view.strip.querySelector(".content");
  view.send = setStateValue;
  listen(view);
  show(view, data);
  return () => view.controller.abort();
}

async function show(view, data) {
  const { signal } = view;
  if (view.data !== data) {
    const [bytes, bits] = await Promise.all([unpack(data.weights), data.maskedBits ? unpack(data.maskedBits) : null]);
    if (signal.aborted) return;
    Object.assign(view, { data, bits, weights: new Uint16Array(bytes.buffer), keys: data.keyLabels ?? data.labels });
  }
  view.dressed = null;
  heed(view, true);
}

// Take over what Python says beside the weights: how to draw, and which token is pinned.
function heed(view, fresh = false) {
  const { data } = view;
  const note = { mode: "shade", direction: DIRECTIONS[0], palette: "indigo", ...readNote(data.key, "strip") };
  view.note = note;
  if (view.dressed !== note.palette) {
    Object.assign(view, { dressed: note.palette, theme: dress(view.strip, note.palette) });
    view.shades = shadeTable(view);
    fresh = true;
  }
  if ((note.seen ?? 0) >= view.sent) view.pinned = known(view, note.pinned);
  if (view.asked !== note.direction) view.direction = view.asked = note.direction;
  const words = JSON.stringify([note.mode, data.labels, data.texts, data.special, data.keyLabels]);
  if (view.words !== words || !view.content.hasChildNodes()) {
    Object.assign(view, { words, mode: note.mode, hovered: null, hoveredKey: null, focused: null, stop: 0 });
    build(view);
  }
  if (fresh || view.named !== view.direction + words) refresh(view, words);
  paint(view);
}

// All that depends on the weights or the direction but not on the pointer.
function refresh(view, words) {
  view.named = view.direction + words;
  view.edges = view.mode === "lines" ? visibleEdges(view) : [];
  view.buttons.forEach((button, index) => button.setAttribute("aria-label", spokenLabel(view, index)));
  view.choices.forEach((button, i) => {
    const chosen = DIRECTIONS[i] === view.direction;
    button.setAttribute("aria-checked", chosen);
    button.tabIndex = chosen ? 0 : -1;
  });
  const stops = Array.from({ length: 9 }, (_, i) => css(weightColour(view.theme, i / 8, view.dressed)));
  view.strip.querySelector(".ramp").style.background = `linear-gradient(to right, ${stops.join(", ")})`;
  view.strip.querySelector(".masked-key").hidden = !view.data.causal && !view.bits;
}

const known = (view, index) => (Number.isInteger(index) && index < view.data.labels.length ? index : null);

// Text colour for each shade: whichever of black and white reads better on it, with a contrast of 4.5 at least.
function shadeTable({ theme, dressed }) {
  return Array.from({ length: SHADES }, (_, level) => {
    const fill = weightColour(theme, level / (SHADES - 1), dressed);
    const text = luminance(fill) > 0.179 ? "#000000" : "#ffffff";
    return { fill: css(fill), text };
  });
}

// ---- Numbers -------------------------------------------------------------------------------------------------------

const weightAt = (view, query, key) => view.weights[query * view.keys.length + key] / 65535;

function isMasked(view, query, key) {
  if (view.data.causal) return key > query;
  if (!view.bits) return false;
  const place = query * view.keys.length + key;
  return (view.bits[place >> 3] >> (7 - (place & 7))) & 1;
}

// What a token does with all others: their weights (-1 where the mask forbids), the largest ones first in `top`.
function partners(view, token, column) {
  const count = column ? view.data.labels.length : view.keys.length;
  const values = new Float64Array(count);
  const top = [];
  let [masked, sum] = [0, 0];
  for (let other = 0; other < count; other += 1) {
    const [query, key] = column ? [other, token] : [token, other];
    const value = (values[other] = isMasked(view, query, key) ? -1 : weightAt(view, query, key));
    if (value < 0) masked += 1;
    else sum += value;
    if (value <= 0 || (top.length === SHOWN && value <= values[top[SHOWN - 1]])) continue;
    let place = top.length;
    while (place > 0 && values[top[place - 1]] < value) place -= 1;
    top.splice(place, 0, other);
    top.length = Math.min(top.length, SHOWN);
  }
  return { values, top, masked, sum };
}

function written(weight) {
  if (weight >= 0.1) return weight.toFixed(2);
  return weight >= 0.0005 ? weight.toFixed(3) : weight > 0 ? "<0.001" : "0";
}

const inText = (view, token) => (view.data.start ?? 0) + token; // the text may begin before this part
const plain = (label) => label.replace(/^[·▁Ġ]/u, "") || label;

// What a token does, as pieces of text; names of tokens are marked, since they may run the other way.
function sentence(view, token, found, column) {
  const { values, masked, sum } = found;
  const names = column ? view.data.labels : view.keys;
  const top = found.top.filter((other) => values[other] >= 0.0005);
  const pieces = [{ text: ` (token ${inText(view, token)}) ${DIRECTIONS[column ? 1 : 0]} ` }];
  top.forEach((other, place) => {
    pieces.push({ text: place ? ", " : "" }, { name: plain(names[other]) }, { text: ` ${written(values[other])}` });
  });
  const left = values.length - masked - top.length;
  const rest = top.reduce((remaining, other) => remaining - values[other], sum);
  if (left) pieces.push({ text: `${top.length ? ", " : ""}${left} more ${written(rest)}` });
  if (masked) pieces.push({ text: column ? `; ${masked} may not see it` : `; it may not see ${masked}` });
  return pieces;
}

function spokenLabel(view, token) {
  const column = view.mode === "shade" && view.direction === DIRECTIONS[1];
  const pieces = sentence(view, token, partners(view, token, column), column);
  const rest = pieces.map(({ name, text }) => name ?? text).join("");
  const number = inText(view, token);
  return plain(view.data.labels[token]) + rest.replace(` (token ${number})`, `, token ${number}:`);
}

// ---- Building ------------------------------------------------------------------------------------------------------

function build(view) {
  view.strip.dataset.mode = view.mode;
  view.content.replaceChildren(view.mode === "lines" ? buildLines(view) : buildShade(view));
  const group = view.strip.querySelector(".directions");
  group.hidden = view.mode === "lines";
  view.choices = DIRECTIONS.map((direction) => {
    const button = makeElement("button", "choice", direction);
    button.type = "button";
    button.setAttribute("role", "radio");
    return button;
  });
  group.replaceChildren(...view.choices);
}

function tokenElement(view, tag, index, labels) {
  const element = makeElement(tag, "token");
  const label = labels[index];
  const word = makeElement("span", "word");
  const marked = /^[·▁Ġ]./u.test(label);
  if (marked) word.append(makeElement("span", "space", "·"));
  const letters = makeElement("bdi", "", marked ? [...label].slice(1).join("") : label);
  letters.dir = "auto";
  word.append(letters);
  element.append(word, makeElement("span", "number"));
  element.dataset.index = index;
  if (view.data.special?.[index] && labels === view.data.labels) element.classList.add("special");
  return element;
}

function queryButtons(view) {
  view.buttons = view.data.labels.map((_, index) => {
    const button = tokenElement(view, "button", index, view.data.labels);
    button.type = "button";
    button.tabIndex = -1;
    return button;
  });
  return view.buttons;
}

function buildShade(view) {
  const running = makeElement("div", "running");
  running.setAttribute("role", "group");
  running.setAttribute("aria-label", "Tokens: arrow keys move, Enter pins, Escape unpins");
  running.dir = directionOf(view.data);
  queryButtons(view).forEach((button, index) => {
    if (/^[·▁Ġ\s]/u.test(view.data.labels[index + 1] ?? "")) button.classList.add("before-space");
    running.append(button);
    if (view.data.texts?.[index]?.includes("\n")) running.append(makeElement("span", "break"));
  });
  view.targets = view.buttons;
  return running;
}

function directionOf(data) {
  const letters = (data.texts ?? data.labels).join("").match(/\p{L}/u);
  return letters && FOREIGN.test(letters[0]) ? "rtl" : "ltr";
}

// ---- Painting: the only work while the pointer moves ---------------------------------------------------------------

const activeToken = (view) => view.pinned ?? view.hovered ?? view.focused ?? known(view, view.note.selected);

function paint(view) {
  const byKey = view.pinned === null ? view.hoveredKey : null; // only the columns of lines have keys to point at
  const token = byKey ?? activeToken(view);
  const column = view.mode === "lines" ? byKey !== null : view.direction === DIRECTIONS[1];
  const found = token === null ? null : partners(view, token, column);
  const values = byKey === null ? found?.values : null;
  view.targets.forEach((element, index) => shade(view, element, values?.[index]));
  writeNumbers(view, values, found?.top);
  markButtons(view, byKey === null ? token : null);
  tell(view, token, found, column);
  if (view.mode === "lines") drawLines(view, token, column);
}

function shade(view, element, value) {
  const level = value === undefined ? "" : value < 0 ? "masked" : Math.round(value * (SHADES - 1));
  const state = `${level} ${view.theme} ${view.dressed}`;
  if (element.state === state) return;
  element.state = state;
  const look = view.shades[level];
  const word = element.firstChild;
  word.style.backgroundColor = look ? look.fill : "";
  word.style.color = look ? look.text : "";
  element.classList.toggle("masked", level === "masked");
  element.title = level === "masked" ? "may not see" : "";
}

function writeNumbers(view, values, top) {
  view.numbered?.forEach((element) => (element.lastChild.textContent = ""));
  view.numbered = [];
  if (!values) return;
  const asked = view.pinned === null ? null : view.hovered; // while one is pinned, pointing asks for another's number
  const shown = top.filter((index) => values[index] >= FAINT && index !== asked);
  for (const index of asked === null ? shown : [...shown, asked]) {
    const element = view.targets[index];
    element.lastChild.textContent = values[index] < 0 ? "may not see" : written(values[index]);
    view.numbered.push(element);
  }
}

function markButtons(view, token) {
  const marks = { active: token, pinned: view.pinned, stop: view.stop };
  for (const [name, index] of Object.entries(marks)) {
    const before = view.strip.querySelector(`button.${name}`);
    const now = view.buttons[index];
    if (before === now) continue;
    before?.classList.remove(name);
    now?.classList.add(name);
    if (name === "pinned") before?.setAttribute("aria-pressed", "false");
    if (name === "pinned") now?.setAttribute("aria-pressed", "true");
    if (name === "stop" && before) before.tabIndex = -1;
    if (name === "stop" && now) now.tabIndex = 0;
  }
}

// The line above the text: what is shown, in words.
function tell(view, token, found, column) {
  const line = view.strip.querySelector(".line");
  if (token === null) {
    line.textContent = "Point at a word to see where it looks. Click to keep it, click again or press Esc to let go.";
    return;
  }
  const names = view.mode === "lines" && column ? view.keys : view.data.labels;
  line.replaceChildren(makeElement("bdi", "subject", plain(names[token])));
  for (const { name, text } of sentence(view, token, found, column)) {
    line.append(name === undefined ? text : makeElement("bdi", "", name));
  }
  if (view.pinned !== null) line.append(" (pinned)");
}

// ---- Pointer and keys ----------------------------------------------------------------------------------------------

function listen(view) {
  const { content, strip, signal } = view;
  const on = (target, type, handler, capture = false) => target.addEventListener(type, handler, { signal, capture });
  const draw = () => view.mode === "lines" && view.edges && paint(view);
  on(window, "attnviz-note", ({ detail }) => view.data?.key === detail && heed(view));
  on(content, "pointerover", (event) => pointAt(view, event.target));
  on(content, "pointerleave", () => move(view, { hovered: null, hoveredKey: null }));
  on(content, "focusin", ({ target }) => {
    view.stop = indexOf(target) ?? view.stop;
    move(view, { focused: target.matches(":focus-visible") ? view.stop : null });
  });
  on(content, "focusout", () => move(view, { focused: null }));
  on(content, "click", ({ target }) => {
    const token = target.closest("button") ? indexOf(target) : null;
    if (token !== null) pin(view, token === view.pinned ? null : token);
  });
  on(content, "keydown", (event) => press(view, event));
  on(content, "scroll", draw, true);
  const turn = ({ target, key }) => {
    if (key && !key.startsWith("Arrow")) return;
    const place = view.choices.indexOf(target);
    if (place >= 0) turnTo(view, key ? 1 - place : place);
  };
  on(strip.querySelector(".directions"), "click", turn);
  on(strip.querySelector(".directions"), "keydown", turn);
  const observer = new ResizeObserver(draw);
  observer.observe(content);
  signal.addEventListener("abort", () => observer.disconnect());
}

function indexOf(target) {
  const element = target.closest(".token");
  return element ? Number(element.dataset.index) : null;
}

// The gaps between tokens change nothing, so that the colours don't flicker on the way from one to the next.
function pointAt(view, target) {
  const index = indexOf(target);
  if (index === null && !target.closest(".between")) return;
  const isKey = Boolean(target.closest(".keys"));
  move(view, { hovered: isKey ? null : index, hoveredKey: isKey ? index : null });
}

function move(view, places) {
  if (!view.buttons || Object.entries(places).every(([kind, token]) => view[kind] === token)) return;
  Object.assign(view, places);
  paint(view);
}

function turnTo(view, place) {
  view.direction = DIRECTIONS[place];
  refresh(view, view.words);
  paint(view);
  view.choices[place].focus();
}

function pin(view, token) {
  view.pinned = token;
  view.send("pin", { value: token, at: nextStamp(view, view.note.seen) });
  paint(view);
}

function press(view, event) {
  if (event.altKey || event.metaKey || event.ctrlKey) return;
  if (event.key === "Escape" && view.pinned !== null) pin(view, null);
  else {
    const next = nextToken(view, event.key, view.buttons);
    if (next === null) return;
    view.hovered = null;
    view.buttons[next].focus({ focusVisible: true });
  }
  event.preventDefault();
  event.stopPropagation(); // the page may have its own meaning for arrow keys
}

function nextToken(view, key, buttons) {
  const last = buttons.length - 1;
  const back = getComputedStyle(buttons[0].parentElement).direction === "rtl" ? "ArrowRight" : "ArrowLeft";
  if (key === "Home") return 0;
  if (key === "End") return last;
  if (key === "ArrowLeft" || key === "ArrowRight") {
    return Math.max(0, Math.min(last, view.stop + (key === back ? -1 : 1)));
  }
  if (key === "ArrowUp" || key === "ArrowDown") return tokenOnNextLine(view.stop, key === "ArrowUp" ? -1 : 1, buttons);
  return null;
}

// The token straight above (-1) or below (1), the same token on the outermost lines.
function tokenOnNextLine(from, step, buttons) {
  const boxes = buttons.map((button) => button.getBoundingClientRect());
  const middle = (boxes[from].left + boxes[from].right) / 2;
  const beyond = boxes.map((box, index) => [index, step * (box.top - boxes[from].top)]).filter(([, gap]) => gap > 4);
  if (!beyond.length) return from;
  const nearest = Math.min(...beyond.map(([, gap]) => gap));
  const line = beyond.filter(([, gap]) => gap < nearest + 4).map(([index]) => index);
  const off = (index) => Math.abs((boxes[index].left + boxes[index].right) / 2 - middle);
  return line.reduce((best, index) => (off(index) < off(best) ? index : best));
}
