// Remembers in the browser that the tour was offered and answered (the style sheet shows the offer by what stands on the
// root element), and scrolls to what a stop speaks of, until the visitor does something.

const NAME = "attnviz-tour";
const PATIENCE = 6000; // milliseconds in which a page draws itself
const NARROW = 640; // px; there the panel isn't kept in sight, so the page isn't scrolled away from it

let [shown, watch] = [null, null];

export default function ({ data }) {
  remember(data.asked);
  if (data.stop === shown) return;
  shown = data.stop;
  watch?.abort();
  if (shown !== null && innerWidth > NARROW) follow(data);
}

function remember(asked) {
  let known = asked;
  try {
    if (asked) localStorage.setItem(NAME, "asked");
    known = localStorage.getItem(NAME) !== null;
  } catch {
    // A browser that keeps nothing: the offer comes again at the next visit.
  }
  document.documentElement.dataset.attnvizTour = known ? "asked" : "new";
}

function follow({ target, edge }) {
  watch = new AbortController();
  const { signal } = watch;
  const end = Date.now() + PATIENCE;
  for (const type of ["wheel", "touchstart", "pointerdown", "keydown"]) {
    addEventListener(type, () => watch.abort(), { signal, capture: true, passive: true });
  }
  const look = () => {
    if (signal.aborted || Date.now() > end) return;
    document.querySelector(`.st-key-${target}`)?.scrollIntoView({ block: edge });
    setTimeout(look, 150);
  };
  look();
}
