// The token strip's second look: two columns of tokens, joined by lines as wide and dark as their weights.

const LINE_HEIGHT = 34; // CSS pixels from token to token
const THINNEST = 1 / 255; // a line fainter than the faintest opacity a screen can show is not drawn

function buildLines(view) {
  const scroller = makeElement("div", "lines");
  const columns = ["queries", "between", "keys"].map((name) => makeElement("div", name));
  const canvas = makeElement("canvas", "canvas");
  view.targets = view.keys.map((_, index) => tokenElement(view, "span", index, view.keys));
  columns[0].append(...queryButtons(view));
  columns[1].append(canvas);
  columns[2].append(...view.targets);
  columns[0].setAttribute("role", "group");
  columns[0].setAttribute("aria-label", "Who looks: arrow keys move, Enter pins, Escape unpins");
  columns[2].setAttribute("aria-hidden", "true"); // the buttons' labels say the same
  scroller.append(...columns);
  Object.assign(view, { scroller, canvas });
  return scroller;
}

function visibleEdges(view) {
  const edges = [];
  const width = view.keys.length;
  view.weights.forEach((value, place) => {
    const weight = value / 65535;
    if (weight >= THINNEST) edges.push([Math.floor(place / width), place % width, weight]);
  });
  return edges;
}

// Draw what is in sight: the lines of one query, the lines that reach one key (`byKey`), or all where `token` is null.
function drawLines(view, token, byKey) {
  const { canvas, scroller, edges } = view;
  const ratio = window.devicePixelRatio || 1;
  const [width, height] = [canvas.parentElement.clientWidth, scroller.clientHeight];
  if (!width || !height) return;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.height = `${height}px`;
  }
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, -scroller.scrollTop * ratio);
  pen.clearRect(0, scroller.scrollTop, width, height);
  pen.strokeStyle = getComputedStyle(view.strip).getPropertyValue("--line");
  for (const edge of edges) if (token === null || edge[byKey ? 1 : 0] === token) drawEdge(pen, edge, width);
}

function drawEdge(pen, [query, key, weight], width) {
  const [from, to] = [(query + 0.5) * LINE_HEIGHT, (key + 0.5) * LINE_HEIGHT];
  pen.globalAlpha = weight;
  pen.lineWidth = 0.75 + 3 * weight;
  pen.beginPath();
  pen.moveTo(0, from);
  pen.bezierCurveTo(width * 0.4, from, width * 0.6, to, width, to);
  pen.stroke();
}
