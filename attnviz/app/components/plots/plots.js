// Gives a chart's layout back what it said at first, before what the visitor does is done: see plots.py.
// Names that begin with "_" are plotly's own (plotly.js 4.1); tests/browser/test_full_screen.py holds them.

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
