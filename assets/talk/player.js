// Steps through a deck: all scenes are drawn beforehand, so a key only shows another one. No request is ever made.

const deck = JSON.parse(document.getElementById("deck").textContent);
const byId = (id) => document.getElementById(id);
const [stage, pictures, notes, blank] = ["stage", "pictures", "notes", "blank"].map(byId);
// A scene with a question takes two steps: the question, then the picture.
const steps = deck.scenes.flatMap((scene, index) => (scene.question ? [[index, false], [index, true]] : [[index, true]]));
const nodes = deck.scenes.map(() => null);
const state = { at: Math.min(Math.max(0, Number(new URLSearchParams(location.hash.slice(1)).get("step")) || 0), steps.length - 1) };

function draw(index) {
  if (nodes[index]) return nodes[index];
  const node = document.createElement("div");
  node.className = "scene";
  node.setAttribute("role", "img");
  node.setAttribute("aria-label", deck.scenes[index].alt);
  pictures.append(node);
  for (const picture of deck.scenes[index].pictures) {
    const place = document.createElement("div");
    node.append(place);
    const { data, layout } = JSON.parse(picture);
    Plotly.newPlot(place, data, layout, { displayModeBar: false, staticPlot: false, responsive: false });
  }
  nodes[index] = node;
  return node;
}

function show() {
  const [index, revealed] = steps[state.at];
  const scene = deck.scenes[index];
  const node = draw(index);
  nodes.forEach((other) => other?.classList.toggle("shown", other === node && revealed));
  byId("title").textContent = scene.title;
  byId("question").textContent = revealed ? "" : scene.question;
  byId("question").hidden = revealed;
  byId("caption").textContent = revealed ? scene.caption : scene.text;
  byId("place").textContent = `${index + 1} / ${deck.scenes.length}`;
  notes.textContent = `${scene.notes || "No notes."} (${scene.minutes} min; next: ${deck.scenes[steps[Math.min(state.at + 1, steps.length - 1)][0]].title})`;
  document.body.dataset.step = state.at;
}

function go(to) {
  state.at = Math.min(Math.max(0, to), steps.length - 1);
  show();
}

function fit() {
  stage.style.transform = `scale(${Math.min(innerWidth / 1280, innerHeight / 720)})`;
}

function leave() {
  parent.postMessage({ attnvizTalk: "leave", step: state.at }, "*");
}

const KEYS = {
  ArrowRight: () => go(state.at + 1), PageDown: () => go(state.at + 1), " ": () => go(state.at + 1), Enter: () => go(state.at + 1),
  ArrowLeft: () => go(state.at - 1), PageUp: () => go(state.at - 1), Backspace: () => go(state.at - 1),
  Home: () => go(0), End: () => go(steps.length - 1),
  f: () => (document.fullscreenElement ? document.exitFullscreen() : document.documentElement.requestFullscreen?.()),
  n: () => { notes.hidden = !notes.hidden; },
  b: () => { blank.hidden = !blank.hidden; },
  ".": () => { blank.hidden = !blank.hidden; },
  Escape: () => (blank.hidden ? leave() : (blank.hidden = true)),
};

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const act = KEYS[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (!act) return;
  event.preventDefault();
  act();
});
addEventListener("click", (event) => { if (!notes.contains(event.target)) go(state.at + (event.clientX < innerWidth / 4 ? -1 : 1)); });
addEventListener("resize", fit);

fit();
show();
stage.focus();
// The other scenes are drawn while the first one is looked at.
(function drawNext(index) {
  if (index >= deck.scenes.length) { document.body.dataset.ready = "true"; return; }
  draw(index);
  setTimeout(drawNext, 0, index + 1);
})(0);
