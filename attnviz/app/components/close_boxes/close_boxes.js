// Closes the box that is open when the visitor clicks elsewhere or presses Escape: see attnviz/app/shell/boxes.py.

const OPEN = '[class*="-box"] > [data-testid="stExpander"] > details[open]';
const LISTS = '[data-baseweb="popover"], [data-testid="stDialog"]'; // what a widget in a box opens lies elsewhere

let watch = null;

export default function () {
  watch?.abort();
  watch = new AbortController();
  const options = { signal: watch.signal, capture: true };
  addEventListener("pointerdown", ({ target }) => closeAll((box) => !box.contains(target) && !target.closest?.(LISTS)), options);
  addEventListener("keydown", ({ key }) => key === "Escape" && closeAll(() => true), options);
  return () => watch.abort();
}

function closeAll(which) {
  for (const box of document.querySelectorAll(OPEN)) if (which(box)) box.querySelector("summary").click();
}
