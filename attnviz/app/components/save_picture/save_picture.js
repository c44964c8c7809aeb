// Saves a picture of the page as PNG, SVG or HTML: a plotly chart by plotly's own means, any other component by drawing what
// stands on the page (text, boxes, canvas, SVG) into one SVG that needs nothing from the page.

const DOTS = 2; // pixels of a PNG for one CSS pixel
const MARGIN = 8; // CSS pixels around a component's drawing

export default function ({ data, parentElement }) {
  const page = parentElement.querySelector(".row");
  page.querySelector("[data-format=html]").hidden = !data.html;
  for (const button of page.querySelectorAll("button")) {
    button.onclick = () => save(data, button.dataset.format, data.grounds[pageTheme(page)]);
  }
}

async function save({ of, name }, format, background) {
  const host = document.querySelector(`.st-key-${CSS.escape(of)}`);
  const plot = host?.querySelector(".js-plotly-plot");
  if (plot) return savePlot(plot, name, format, background);
  const root = [...(host?.querySelectorAll("*") ?? [])].find((element) => element.shadowRoot)?.shadowRoot;
  if (!root) return;
  const svg = drawnAsSvg(root, background);
  const text = new XMLSerializer().serializeToString(svg);
  const file = new Blob([text], { type: "image/svg+xml" });
  const made = { svg: () => file, html: () => pageWith(svg, name, background), png: () => pixels(file, svg) };
  download(await made[format](), `${name}.${format}`);
}

function savePlot(plot, name, format, background) {
  const { width, height } = plot._fullLayout;
  const figure = { data: plot.data, layout: { ...plot.layout, paper_bgcolor: background }, config: { staticPlot: true } };
  return window.Plotly.downloadImage(figure, { format, filename: name, width, height, scale: format === "png" ? DOTS : 1 });
}

function pageWith(svg, name, background) {
  const page = document.implementation.createHTMLDocument(name);
  const meta = page.createElement("meta");
  meta.setAttribute("charset", "utf-8");
  page.head.prepend(meta);
  page.body.style.background = background;
  page.body.append(page.importNode(svg, true));
  return new Blob(["<!doctype html>\n", new XMLSerializer().serializeToString(page.documentElement)], { type: "text/html" });
}

function download(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

async function pixels(file, svg) {
  const image = new Image();
  image.src = URL.createObjectURL(file);
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = DOTS * Number(svg.getAttribute("width"));
  canvas.height = DOTS * Number(svg.getAttribute("height"));
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(image.src);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

// ---- What stands on the page, as SVG -------------------------------------------------------------------------------

const PASSING = ".tip, .spoken, .hover, .directions, style"; // what isn't part of the picture

function shape(tag, attributes) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

function drawnAsSvg(root, background) {
  const scrolled = [...root.querySelectorAll("*")].filter((element) => element.scrollTop || element.scrollLeft);
  const places = scrolled.map((element) => [element.scrollLeft, element.scrollTop]);
  scrolled.forEach((element) => element.scrollTo(0, 0)); // labels that stick to an edge go home
  const sheet = { shapes: [], box: { left: Infinity, top: Infinity, right: -Infinity, bottom: -Infinity } };
  for (const child of root.children) drawElement(sheet, child);
  scrolled.forEach((element, i) => element.scrollTo(...places[i]));
  const [left, top] = [sheet.box.left - MARGIN, sheet.box.top - MARGIN];
  const [width, height] = [Math.ceil(sheet.box.right - left + MARGIN), Math.ceil(sheet.box.bottom - top + MARGIN)];
  const svg = shape("svg", { width, height, viewBox: `0 0 ${width} ${height}` });
  const moved = shape("g", { transform: `translate(${-left} ${-top})` });
  moved.append(...sheet.shapes);
  svg.append(shape("rect", { width, height, fill: background }), moved);
  return svg;
}

function drawElement(sheet, element) {
  const style = getComputedStyle(element);
  if (element.matches(PASSING) || style.display === "none" || style.visibility === "hidden") return;
  const box = element.getBoundingClientRect();
  if (element.tagName === "CANVAS") return drawCanvas(sheet, element, box);
  if (element.tagName === "svg") return drawSvg(sheet, element, box);
  drawBox(sheet, box, style);
  for (const child of element.childNodes) {
    if (child.nodeType === Node.TEXT_NODE) drawText(sheet, child, style);
    else if (child.nodeType === Node.ELEMENT_NODE) drawElement(sheet, child);
  }
}

function grow({ box }, part) {
  if (!part.width && !part.height) return;
  for (const side of ["left", "top"]) box[side] = Math.min(box[side], part[side]);
  for (const side of ["right", "bottom"]) box[side] = Math.max(box[side], part[side]);
}

const place = ({ left: x, top: y, width, height }) => ({ x, y, width, height });
const isClear = (colour) => colour === "transparent" || /^rgba\(.*, 0\)$/.test(colour);

// A ground and its rim. A ramp keeps its colours; a hatched ground becomes a flat one of its first colour.
function drawBox(sheet, box, style) {
  const colours = style.backgroundImage.match(/rgba?\([^)]+\)/g) ?? [];
  const ramp = style.backgroundImage.startsWith("linear-gradient") && addRamp(sheet, colours);
  const fill = ramp || (isClear(style.backgroundColor) ? (colours[0] ?? "none") : style.backgroundColor);
  const rim = ["outline", "border-top"].find(
    (kind) => style.getPropertyValue(`${kind}-style`) !== "none" && !isClear(style.getPropertyValue(`${kind}-color`)),
  );
  if (fill === "none" && !rim) return;
  const [stroke, thick] = rim ? ["color", "width"].map((part) => style.getPropertyValue(`${rim}-${part}`)) : ["none", "0"];
  const look = { fill, stroke, "stroke-width": parseFloat(thick), rx: parseFloat(style.borderRadius) || 0 };
  sheet.shapes.push(shape("rect", { ...place(box), ...look }));
  grow(sheet, box);
}

function addRamp(sheet, colours) {
  const id = `ramp-${sheet.shapes.length}`;
  const ramp = shape("linearGradient", { id });
  const last = colours.length - 1;
  ramp.append(...colours.map((colour, i) => shape("stop", { offset: i / last, "stop-color": colour })));
  sheet.shapes.push(ramp);
  return `url(#${id})`;
}

function drawCanvas(sheet, canvas, box) {
  sheet.shapes.push(shape("image", { ...place(box), href: canvas.toDataURL("image/png") }));
  grow(sheet, box);
}

const KEPT = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-linecap", "opacity"];

function drawSvg(sheet, element, box) {
  const copy = element.cloneNode(true);
  const [from, to] = [element, copy].map((tree) => [...tree.querySelectorAll("*")]);
  from.forEach((part, i) => {
    const style = getComputedStyle(part);
    for (const name of KEPT) to[i].setAttribute(name, style.getPropertyValue(name));
    to[i].removeAttribute("style");
    to[i].removeAttribute("class");
    grow(sheet, part.getBoundingClientRect());
  });
  copy.removeAttribute("class");
  for (const [name, value] of Object.entries({ ...place(box), overflow: "visible" })) copy.setAttribute(name, value);
  sheet.shapes.push(copy);
}

// Line by line, each as wide as it is on the page: the font may be another where the file is opened.
function drawText(sheet, node, style) {
  for (const { text, box } of linesOf(node)) {
    const size = parseFloat(style.fontSize);
    const written = shape("text", {
      x: box.left,
      y: (box.top + box.bottom) / 2 + 0.34 * size,
      fill: style.color,
      "font-family": style.fontFamily,
      "font-size": size,
      "font-style": style.fontStyle,
      "font-weight": style.fontWeight,
      textLength: box.right - box.left,
      lengthAdjust: "spacingAndGlyphs",
      style: "white-space: pre",
    });
    written.textContent = text;
    sheet.shapes.push(written);
    grow(sheet, { ...box, width: box.right - box.left, height: box.bottom - box.top });
  }
}

function linesOf(node) {
  const lines = [];
  const range = document.createRange();
  let start = 0;
  for (const letter of node.data) {
    range.setStart(node, start);
    range.setEnd(node, (start += letter.length));
    const { left, right, top, bottom, width } = range.getBoundingClientRect();
    if (!width) continue; // white space that the page doesn't show
    const line = lines.at(-1);
    if (!line || Math.abs(line.box.top - top) > 2) lines.push({ text: letter, box: { left, right, top, bottom } });
    else {
      line.text += letter;
      line.box.left = Math.min(line.box.left, left);
      line.box.right = Math.max(line.box.right, right);
    }
  }
  return lines.filter(({ text }) => text.trim());
}
