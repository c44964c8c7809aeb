// Steps through a deck: all scenes are drawn beforehand, so a key only shows another one. No request is ever made.

const deck = JSON.parse(document.getElementById("deck").textContent);
const byId = (id) => document.getElementById(id);
const [stage, pictures, blank] = ["stage", "pictures", "blank"].map(byId);
// A scene with a question takes two steps: the question, then the picture.
const steps = deck.scenes.flatMap((scene, index) => (scene.question ? [[index, false], [index, true]] : [[index, true]]));
const nodes = deck.scenes.map(() => null);
const state = { at: Math.min(Math.max(0, Number(new URLSearchParams(location.hash.slice(1)).get("step")) || 0), steps.length - 1),
  began: null, window: null };

function element(tag, className, text, from = document) {
  const made = from.createElement(tag);
  made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

// Slides

function draw(index) {
  if (nodes[index]) return nodes[index];
  const node = element("div", "scene");
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

// The key would give the answer away, so it is marked only beside the picture.
function say(place, scene, revealed) {
  place.replaceChildren(...(scene.sentence ?? []).map(([text, role]) => element("span", role === "key" && !revealed ? "" : role, text)));
}

function fitText(place, largest, smallest) {
  for (let size = largest; size >= smallest; size -= 1) {
    place.style.fontSize = `${size}px`;
    if (place.scrollHeight <= place.clientHeight + 1 && place.scrollWidth <= place.clientWidth + 1) return;
  }
}

function show() {
  const [index, revealed] = steps[state.at];
  const scene = deck.scenes[index];
  const node = draw(index);
  nodes.forEach((other) => other?.classList.toggle("shown", other === node && revealed));
  byId("about").textContent = scene.about ?? "";
  byId("title").textContent = revealed ? scene.title : ""; // a title may give the answer away
  fitText(byId("title"), 36, 22);
  byId("asked").hidden = revealed;
  byId("sentence").hidden = !revealed;
  say(byId(revealed ? "sentence" : "asked-sentence"), scene, revealed);
  byId("question").textContent = revealed ? "" : scene.question;
  byId("caption").textContent = revealed ? scene.caption : "";
  fitText(byId("caption"), 27, 18);
  byId("place").textContent = `${index + 1} / ${deck.scenes.length}`;
  document.body.dataset.step = state.at;
  tell();
}

function go(to) {
  state.at = Math.min(Math.max(0, to), steps.length - 1);
  if (state.at > 0) state.began ??= Date.now(); // the clock starts with the first key
  show();
}

function fit() {
  const onDesk = document.body.dataset.view === "desk";
  const share = onDesk ? 0.66 : 1;
  const scale = share * Math.min(innerWidth / 1280, innerHeight / 720);
  const left = onDesk ? 0 : (innerWidth - 1280 * scale) / 2;
  const top = onDesk ? 0 : (innerHeight - 720 * scale) / 2;
  stage.style.transform = `translate(${left}px, ${top}px) scale(${scale})`;
  document.body.style.setProperty("--slide-width", `${1280 * scale}px`);
  document.body.style.setProperty("--slide-height", `${720 * scale}px`);
}

// What only the speaker sees: on this page beside the slide, or in a window of its own

const desk = makeDesk(document);
desk.hidden = true;
document.body.append(desk);

function makeDesk(from) {
  const made = element("aside", "desk", "", from);
  const times = element("div", "times", "", from);
  for (const name of ["clock", "plan", "next"]) times.append(element("div", name, "", from));
  made.append(times, element("div", "now", "", from), element("div", "notes", "", from));
  return made;
}

const minutes = (n) => `${Number(n.toFixed(1))} min`;
const clock = (seconds) => `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, "0")}`;

const shownOf = (scene, revealed) => (revealed ? `${scene.title}\n${scene.caption}` : `the question\n${scene.question}`);

function tell() {
  const [index, revealed] = steps[state.at];
  const scene = deck.scenes[index];
  const planned = (until) => deck.scenes.slice(0, until).reduce((sum, each) => sum + each.minutes, 0);
  const seconds = state.began === null ? 0 : (Date.now() - state.began) / 1000;
  const next = revealed ? deck.scenes[index + 1]?.title ?? "the end" : `the answer (${scene.title})`;
  const says = {
    clock: clock(seconds),
    plan: `of ${minutes(planned(deck.scenes.length))}\nThis scene: ${minutes(scene.minutes)}, until ${clock(60 * planned(index + 1))}`,
    next: `Next: ${next}`,
    now: `${blank.hidden ? "On the slide" : "The screen is blank (B); behind it"}: ${shownOf(scene, revealed)}`,
    notes: scene.notes || "No notes.",
  };
  for (const place of [desk, state.window?.document.querySelector(".desk")]) {
    for (const [name, text] of Object.entries(place ? says : {})) place.querySelector(`.${name}`).textContent = text;
  }
}

function turnDesk() {
  desk.hidden = !desk.hidden;
  document.body.dataset.view = desk.hidden ? "slide" : "desk";
  fit();
}

function openWindow() {
  if (state.window && !state.window.closed) return closeWindow();
  state.window = open("", "attnviz-notes", "popup,width=860,height=640");
  if (!state.window) return turnDesk(); // the browser forbids windows
  const { document: there } = state.window;
  there.title = `Notes: ${deck.title}`;
  there.head.replaceChildren(there.importNode(byId("style"), true));
  there.body.className = "desk-window";
  there.body.dataset.theme = document.body.dataset.theme;
  there.body.replaceChildren(makeDesk(there));
  state.window.addEventListener("keydown", (event) => { if (event.key.toLowerCase() !== "n") hear(event); }); // has the notes
  tell();
}

function closeWindow() {
  state.window?.close();
  state.window = null;
}

function leave() {
  closeWindow();
  parent.postMessage({ attnvizTalk: "leave", step: state.at }, "*");
}

const turnBlank = () => { blank.hidden = !blank.hidden; tell(); };
const forward = () => go(state.at + 1);
const back = () => go(state.at - 1);
const KEYS = {
  ArrowRight: forward, PageDown: forward, " ": forward, Enter: forward, ArrowLeft: back, PageUp: back, Backspace: back,
  Home: () => go(0), End: () => go(steps.length - 1),
  f: () => (document.fullscreenElement ? document.exitFullscreen() : document.documentElement.requestFullscreen?.()),
  n: turnDesk, p: openWindow, b: turnBlank, ".": turnBlank,
  Escape: () => (blank.hidden ? leave() : turnBlank()),
};

function hear(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const act = KEYS[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (!act) return;
  event.preventDefault();
  act();
}

addEventListener("keydown", hear);
addEventListener("click", (event) => { if (!desk.contains(event.target)) (event.clientX < innerWidth / 4 ? back : forward)(); });
addEventListener("resize", fit);
addEventListener("pagehide", closeWindow);
setInterval(tell, 1000);

fit();
stage.focus();
// The pictures measure their labels, so the type must be there first. The other scenes are drawn while the first is looked at.
Promise.all(["400", "600"].map((weight) => document.fonts.load(`${weight} 18px "Source Sans"`))).finally(() => {
  show();
  (function drawNext(index) {
    if (index >= deck.scenes.length) { document.body.dataset.ready = "true"; return; }
    draw(index);
    setTimeout(drawNext, 0, index + 1);
  })(0);
});
