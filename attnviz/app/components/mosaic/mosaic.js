// A picture of all heads of a model on one canvas: colours, outline, tooltip and keys live in the browser.

const GAP = 4; // CSS pixels between thumbnails
const BAR = 4; // height of the strip that shows a measure
const CAPTION = 17; // height of a caption under a thumbnail that stands outside the table
const HEADS_LINE = 22; // height of the labels on top
const SIZES = { leastThatFits: 12, least: 28, leastWithCaption: 46, most: 72 };
const WAIT = 120; // milliseconds between the last arrow key and the message to Python

export default function ({ data, parentElement, setStateValue }) {
  const view = renewedView(parentElement);
  view.nodes = findNodes(parentElement);
  view.send = setStateValue;
  listen(view);
  show(view, data);
  return () => {
    view.controller.abort();
    clearTimeout(view.timer);
  };
}

function findNodes(root) {
  const find = (name) => root.querySelector(`.${name}`);
  const names = ["overview", "scroller", "tops", "sides", "field", "picture", "outline", "hover", "tip", "spoken"];
  return Object.fromEntries(names.map((name) => [name, find(name)]));
}

async function show(view, data) {
  const { signal } = view;
  if (view.data !== data) {
    const bytes = await unpack(data.image);
    if (signal.aborted) return;
    Object.assign(view, { data, bytes, painted: null });
  }
  view.measure = null;
  heed(view);
}

// Take over what Python says beside the picture: the measure, the order, the selection, the theme it knows of.
function heed(view) {
  const { key } = view.data;
  const { selected, seen, theme, label, palette } = (view.note = readNote(key, "selection"));
  if ((seen ?? 0) >= view.sent) view.selected = tileOf(view, selected);
  view.label = label;
  if (!view.measure || view.palette !== palette) {
    view.palette = palette;
    view.theme = dress(view.nodes.overview, palette);
    view.measure = null;
  }
  if (theme !== undefined && theme !== view.theme && view.reported !== view.theme) {
    view.reported = view.theme;
    view.send("theme", view.theme);
  }
  const measure = readNote(key, "measure");
  if (view.measure === measure && view.plan) return placeOutline(view);
  view.measure = measure;
  arrange(view);
}

function tileOf(view, head) {
  const index = head ? view.data.cells.findIndex((cell) => cell && cell[0] === head[0] && cell[1] === head[1]) : -1;
  return index < 0 ? null : index;
}

const nameOf = ([layer, head]) => `L${layer} H${head}`;

// ---- Where each thumbnail goes -------------------------------------------------------------------------------------

function arrange(view) {
  if (!view.measure || !view.nodes.overview.clientWidth) return;
  const before = view.plan?.size;
  view.nodes.overview.style.setProperty("--height", `${view.data.height}px`);
  view.plan = makePlan(view);
  if (view.plan.size !== before) view.inSight = null;
  drawLabels(view);
  drawPicture(view);
  placeOutline(view);
}

function makePlan(view) {
  const { data, measure } = view;
  const flowing = Boolean(measure.order) || !data.rowLabels;
  const extra = (measure.tint ? BAR + 2 : 0) + (flowing ? CAPTION : 0);
  const height = parseFloat(getComputedStyle(view.nodes.scroller).maxHeight);
  const room = { width: view.nodes.overview.clientWidth - 2, height, extra };
  const plan = flowing ? flowPlan(view, room) : tablePlan(data, room);
  const stepY = plan.size + extra + GAP;
  for (const tile of plan.tiles) {
    tile.x = tile.column * (plan.size + GAP);
    tile.y = tile.row * stepY;
  }
  plan.at = new Map(plan.tiles.map((tile) => [`${tile.row} ${tile.column}`, tile]));
  plan.of = new Map(plan.tiles.map((tile) => [tile.index, tile]));
  plan.width = plan.columns * (plan.size + GAP) - GAP;
  plan.height = plan.rows * stepY - GAP;
  return { ...plan, flowing, extra, stepY };
}

function tablePlan(data, room) {
  const upright = { rows: data.rows, columns: data.columns, sides: data.rowLabels, tops: data.columnLabels };
  const turned = { rows: data.columns, columns: data.rows, sides: data.columnLabels, tops: data.rowLabels };
  const fits = (shape) => Math.min(widthFit(shape, room), heightFit(shape, room));
  const shape = data.turn && fits(turned) > fits(upright) ? turned : upright;
  const tiles = [];
  data.cells.forEach((cell, index) => {
    if (!cell) return;
    const [row, column] = [Math.floor(index / data.columns), index % data.columns];
    tiles.push(shape === upright ? { index, row, column } : { index, row: column, column: row });
  });
  return { ...shape, tiles, size: tableSize(shape, room), sideWidth: sideWidth(shape) };
}

const sideWidth = (shape) => 10 + 8 * Math.max(...shape.sides.map((label) => label.length));
const widthFit = (shape, room) => Math.floor((room.width - sideWidth(shape) + GAP) / shape.columns) - GAP;
const heightFit = (shape, room) => Math.floor((room.height - HEADS_LINE + GAP) / shape.rows) - GAP - room.extra;

// As wide as the container, as high as the room if the thumbnails don't get too small, else the table scrolls.
function tableSize(shape, room) {
  const fit = widthFit(shape, room);
  const wide = fit < SIZES.leastThatFits ? SIZES.least : Math.min(SIZES.most, fit); // too many columns: let it scroll
  const high = heightFit(shape, room);
  return high >= SIZES.leastThatFits ? Math.min(wide, high) : wide;
}

function flowPlan(view, room) {
  const { cells } = view.data;
  const order = view.measure.order ?? cells.map((_, index) => index);
  const shown = order.filter((index) => cells[index]);
  const columns = Math.max(1, Math.floor((room.width + GAP) / (SIZES.leastWithCaption + GAP)));
  const size = Math.min(SIZES.most, Math.floor((room.width + GAP) / columns) - GAP);
  const tiles = shown.map((index, place) => ({ index, row: Math.floor(place / columns), column: place % columns }));
  return { tiles, columns, rows: Math.ceil(shown.length / columns), size, sideWidth: 0, sides: [], tops: [] };
}

// ---- Drawing -------------------------------------------------------------------------------------------------------

function drawLabels(view) {
  const { nodes, plan } = view;
  nodes.overview.style.setProperty("--side", `${plan.sideWidth}px`);
  nodes.overview.classList.toggle("flowing", plan.flowing);
  const label = (text, place, step, length) => {
    const element = makeElement("span", "label", text);
    element.style[place] = `${step}px`;
    element.style[place === "top" ? "height" : "width"] = `${length}px`;
    return element;
  };
  nodes.tops.replaceChildren(...plan.tops.map((text, i) => label(text, "left", i * (plan.size + GAP), plan.size)));
  nodes.sides.replaceChildren(...plan.sides.map((text, i) => label(text, "top", i * plan.stepY, plan.size)));
  nodes.field.style.width = nodes.tops.style.width = `${plan.width}px`;
  nodes.field.style.height = `${plan.height}px`;
}

function drawPicture(view) {
  const { plan, nodes } = view;
  const ratio = window.devicePixelRatio || 1;
  const canvas = nodes.picture;
  canvas.width = Math.ceil(plan.width * ratio);
  canvas.height = Math.ceil((plan.height + GAP) * ratio);
  canvas.style.width = `${canvas.width / ratio}px`;
  canvas.style.height = `${canvas.height / ratio}px`;
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  const mosaic = enlargedMosaic(view, Math.ceil((plan.size * ratio) / view.data.thumb));
  const style = getComputedStyle(nodes.overview);
  const names = ["rule", "bar", "text", "masked"];
  const colours = Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`)]));
  pen.font = `12px ${style.fontFamily}`;
  for (const tile of plan.tiles) drawTile(view, pen, tile, mosaic, colours);
}

function drawTile(view, pen, tile, mosaic, colours) {
  const { plan, data, measure } = view;
  const side = mosaic.side;
  const [row, column] = [Math.floor(tile.index / data.columns), tile.index % data.columns];
  pen.imageSmoothingQuality = "high";
  pen.drawImage(mosaic.canvas, column * side, row * side, side, side, tile.x, tile.y, plan.size, plan.size);
  pen.strokeStyle = colours.rule;
  pen.strokeRect(tile.x + 0.5, tile.y + 0.5, plan.size - 1, plan.size - 1);
  const share = measure.tint?.[tile.index];
  if (share !== undefined && share !== null) {
    pen.fillStyle = colours.masked;
    pen.fillRect(tile.x, tile.y + plan.size + 2, plan.size, BAR);
    pen.fillStyle = colours.bar;
    pen.fillRect(tile.x, tile.y + plan.size + 2, plan.size * share, BAR);
  }
  if (!plan.flowing) return;
  pen.fillStyle = colours.text;
  pen.textAlign = "center";
  const name = nameOf(data.cells[tile.index]).replace(" ", "");
  pen.fillText(name, tile.x + plan.size / 2, tile.y + plan.size + plan.extra - 4);
}

// The mosaic in the page's colours, each cell `times` pixels wide: first hard-edged and larger than needed, then shrunk
// smoothly to the thumbnail's size, so that all cells of a thumbnail look equally wide.
function enlargedMosaic(view, times) {
  const { data } = view;
  const name = `${view.theme} ${view.palette} ${times}`;
  if (view.painted?.name === name) return view.painted;
  const small = document.createElement("canvas");
  small.width = data.columns * data.thumb;
  small.height = data.rows * data.thumb;
  small.getContext("2d").putImageData(colouredPixels(view, small.width, small.height), 0, 0);
  const canvas = document.createElement("canvas");
  canvas.width = small.width * times;
  canvas.height = small.height * times;
  const pen = canvas.getContext("2d");
  pen.imageSmoothingEnabled = false;
  pen.drawImage(small, 0, 0, canvas.width, canvas.height);
  view.painted = { name, canvas, side: data.thumb * times };
  return view.painted;
}

function colouredPixels(view, width, height) {
  const { levels } = view.data;
  const shade = (level) => weightColour(view.theme, level / (levels - 1), view.palette);
  const colours = [...Array.from({ length: levels }, (_, level) => shade(level)), rgbOf(PALETTE[view.theme].masked)];
  const pixels = new ImageData(width, height);
  view.bytes.forEach((level, i) => {
    pixels.data.set(colours[level], 4 * i);
    pixels.data[4 * i + 3] = 255;
  });
  return pixels;
}

function placeOutline(view) {
  const { nodes, plan } = view;
  const tile = plan.of.get(view.selected);
  frame(nodes.outline, tile, plan);
  nodes.overview.dataset.selected = tile ? nameOf(view.data.cells[tile.index]) : "";
  nodes.scroller.setAttribute("aria-label", `${view.label ?? "All heads"}. ${describe(view, tile)}`);
  for (const [list, place] of [[nodes.tops, tile?.column], [nodes.sides, tile?.row]]) {
    [...list.children].forEach((label, i) => label.classList.toggle("current", i === place));
  }
  if (tile && view.inSight !== tile.index) scrollTo(view, tile);
  view.inSight = tile?.index;
}

function frame(element, tile, plan) {
  element.hidden = !tile;
  if (!tile) return;
  element.style.transform = `translate(${tile.x}px, ${tile.y}px)`;
  element.style.width = element.style.height = `${plan.size}px`;
}

function scrollTo(view, tile) {
  const { nodes, plan } = view;
  const box = nodes.scroller;
  const margin = 6;
  const [roomX, roomY] = [box.clientWidth - plan.sideWidth, box.clientHeight - (plan.flowing ? 0 : HEADS_LINE)];
  const keep = (now, start, length, room) =>
    Math.max(start + length + margin - room, Math.min(now, start - margin));
  box.scrollTop = keep(box.scrollTop, tile.y, plan.size + plan.extra, roomY);
  box.scrollLeft = keep(box.scrollLeft, tile.x, plan.size, roomX);
}

function describe(view, tile) {
  if (!tile) return "No head is selected";
  const caption = view.measure.captions?.[tile.index];
  return nameOf(view.data.cells[tile.index]) + (caption ? `, ${caption}` : "");
}

// ---- Pointer and keys ----------------------------------------------------------------------------------------------

function listen(view) {
  const { nodes, signal } = view;
  const on = (target, type, handler) => target.addEventListener(type, handler, { signal });
  on(nodes.field, "click", (event) => {
    const tile = tileUnder(view, event);
    if (tile) choose(view, tile, 0);
  });
  on(nodes.field, "pointermove", (event) => point(view, tileUnder(view, event)));
  on(nodes.field, "pointerleave", () => point(view, null));
  on(nodes.scroller, "scroll", () => point(view, null));
  on(nodes.scroller, "keydown", (event) => press(view, event));
  on(window, "attnviz-note", ({ detail }) => view.data?.key === detail && heed(view));
  on(window, "resize", () => arrange(view));
  const observer = new ResizeObserver(() => arrange(view));
  observer.observe(nodes.overview);
  signal.addEventListener("abort", () => observer.disconnect());
}

function tileUnder(view, event) {
  if (!view.plan) return null;
  const box = view.nodes.field.getBoundingClientRect();
  const column = Math.floor((event.clientX - box.left) / (view.plan.size + GAP));
  const row = Math.floor((event.clientY - box.top) / view.plan.stepY);
  return view.plan.at.get(`${row} ${column}`) ?? null;
}

function point(view, tile) {
  const { nodes, plan } = view;
  frame(nodes.hover, tile, plan ?? {});
  nodes.tip.hidden = !tile;
  if (!tile) return;
  const caption = view.measure.captions?.[tile.index];
  const lines = [makeElement("strong", "", nameOf(view.data.cells[tile.index]))];
  if (caption) lines.push(makeElement("span", "", caption));
  nodes.tip.replaceChildren(...lines);
  const outer = nodes.overview.getBoundingClientRect();
  const field = nodes.field.getBoundingClientRect();
  const left = field.left - outer.left + tile.x + plan.size / 2 - nodes.tip.offsetWidth / 2;
  const above = field.top - outer.top + tile.y - nodes.tip.offsetHeight - 6;
  const below = field.top - outer.top + tile.y + plan.size + 8;
  nodes.tip.style.left = `${Math.max(0, Math.min(left, outer.width - nodes.tip.offsetWidth))}px`;
  nodes.tip.style.top = `${outer.top + above > 0 ? above : below}px`;
}

function choose(view, tile, wait) {
  view.selected = tile.index;
  const at = nextStamp(view, view.note.seen);
  placeOutline(view);
  view.nodes.spoken.textContent = describe(view, tile);
  clearTimeout(view.timer);
  view.timer = setTimeout(() => view.send("choice", { value: view.data.cells[tile.index], at }), wait);
}

const MOVES = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

function press(view, event) {
  if (event.altKey || event.metaKey || !view.plan) return;
  const tile = nextTile(view.plan, view.plan.of.get(view.selected), event);
  if (tile === undefined) return;
  event.preventDefault();
  event.stopPropagation(); // the page may have its own meaning for arrow keys
  if (tile && tile.index !== view.selected) choose(view, tile, WAIT);
}

const isBefore = (a, b) => a.row < b.row || (a.row === b.row && a.column < b.column);

// The tile a key leads to, null where the table ends, undefined for keys that mean nothing here.
function nextTile(plan, from, { key, ctrlKey }) {
  const tiles = plan.tiles;
  if (!tiles.length) return undefined;
  if (key === "Home" || key === "End") {
    const line = ctrlKey || !from ? tiles : tiles.filter((tile) => tile.row === from.row);
    return line.reduce((best, tile) => ((key === "Home") === isBefore(tile, best) ? tile : best));
  }
  if (!(key in MOVES) || ctrlKey) return undefined;
  if (!from) return tiles[0] ?? null;
  if (plan.flowing && MOVES[key][0] === 0) return tiles[tiles.indexOf(from) + MOVES[key][1]] ?? null;
  let { row, column } = from;
  do {
    row += MOVES[key][0];
    column += MOVES[key][1];
    if (plan.at.has(`${row} ${column}`)) return plan.at.get(`${row} ${column}`);
  } while (row >= 0 && column >= 0 && row < plan.rows && column < plan.columns);
  return null;
}
