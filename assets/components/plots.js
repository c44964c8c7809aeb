// Keeps charts as they were while the page draws them anew, as it does on the way to full screen and back.
//
// plotly writes into the layout that it is given: the part of its room that a map with square cells takes, and the range
// that was zoomed to. The page keeps that layout, and a new chart made of it takes both for what was asked for: each time
// the map is squeezed into the room that is left, and "Reset axes" goes back to the zoom. So before anything that the
// visitor does is done, the layout gets back what it said at first. The names that begin with "_" are plotly's own
// (plotly.js 4.1, cartesian/constraints.js and plots/cartesian/axes.js); tests/browser/test_figures.py holds them.

let watch = null;

export default function () {
  watch?.abort();
  watch = new AbortController();
  for (const type of ["pointerdown", "keydown"]) {
    addEventListener(type, mendAll, { signal: watch.signal, capture: true, passive: true });
  }
  return () => watch.abort();
}

function mendAll() {
  for (const plot of document.querySelectorAll(".js-plotly-plot")) {
    for (const axis of axes(plot._fullLayout ?? {})) mend(axis, plot.layout[axis._name] ?? {});
  }
}

function axes(layout) {
  return Object.entries(layout)
    .filter(([name, axis]) => /^[xy]axis\d*$/.test(name) && axis)
    .map(([, axis]) => axis);
}

function mend(axis, asked) {
  if (axis._inputDomain) asked.domain = [...axis._inputDomain];
  const whole = [asked.minallowed, asked.maxallowed];
  if (!whole.every(Number.isFinite)) return;
  if (axis.range[0] > axis.range[1]) whole.reverse();
  [axis._rangeInitial0, axis._rangeInitial1] = whole;
}
