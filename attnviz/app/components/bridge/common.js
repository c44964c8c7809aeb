// Shared by the components; Python puts PALETTE and this file in front of each of theirs. Own code, no library.

const rgbOf = (hex) => [1, 3, 5].map((start) => parseInt(hex.slice(start, start + 2), 16));
const css = (rgb) => `rgb(${rgb[0]}, ${rgb[1]}, ${rgb[2]})`;

// [red, green, blue] of a weight from 0 to 1, on one of the scales that the app's charts use.
function weightColour(theme, weight, scale = "indigo") {
  const stops = PALETTE[theme].weight[scale];
  const place = Math.min(1, Math.max(0, weight)) * (stops.length - 1);
  const lower = Math.min(stops.length - 2, Math.floor(place));
  const [from, to] = [rgbOf(stops[lower]), rgbOf(stops[lower + 1])];
  return from.map((start, i) => Math.round(start + (to[i] - start) * (place - lower)));
}

// Relative luminance, 0 black to 1 white (WCAG 2.2).
function luminance(rgb) {
  const linear = rgb.map((value) => {
    const part = value / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
}

// "light" or "dark", from the colour that Streamlit's theme gives to the page behind `element`.
function pageTheme(element) {
  const probe = document.createElement("span");
  probe.style.color = "var(--st-background-color, white)";
  element.append(probe);
  const rgb = getComputedStyle(probe).color.match(/[\d.]+/g).slice(0, 3).map(Number);
  probe.remove();
  return luminance(rgb) < 0.18 ? "dark" : "light";
}

// Give a component the colours of the page's theme, as custom properties for its style sheet, and return the theme.
function dress(element, scale = "indigo") {
  const theme = pageTheme(element);
  element.dataset.theme = theme;
  for (const name of ["masked", "rule", "bar"]) element.style.setProperty(`--${name}`, PALETTE[theme][name]);
  element.style.setProperty("--mark", PALETTE[theme].mark[scale]);
  return theme;
}

// The bytes behind base64 text of a zlib stream.
async function unpack(text) {
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// What Python last said on a side channel (see note.js), or an empty object.
function readNote(key, slot) {
  for (const element of document.querySelectorAll("[data-attnviz-note]")) {
    if (element.dataset.attnvizNote === `${key} ${slot}`) return element.attnvizNote;
  }
  return {};
}

// The view that belongs to a mounted component, with every listener of its last run gone: Streamlit runs a component's
// default export again on each change of data or theme, without calling its clean-up.
const views = new WeakMap();
function renewedView(root) {
  const view = views.get(root) ?? { sent: 0 };
  view.controller?.abort();
  view.controller = new AbortController();
  view.signal = view.controller.signal;
  views.set(root, view);
  return view;
}

// A number that grows with each choice a visitor makes: Python answers with the newest it has seen.
function nextStamp(view, seen) {
  view.sent = Math.max(Date.now(), view.sent + 1, (seen ?? 0) + 1);
  return view.sent;
}

function makeElement(tag, className, text = "") {
  const element = document.createElement(tag);
  element.className = className;
  element.textContent = text;
  return element;
}
