// Reports the cell under a click on a plotly map. The listener sits on the document, so that it outlives redrawn charts;
// each run of the component replaces the listener of the run before.

const listeners = new Map()

export default function ({ data, setTriggerValue }) {
  listeners.get(data.chart)?.abort()
  const listener = new AbortController()
  listeners.set(data.chart, listener)
  const options = { capture: true, signal: listener.signal }
  let down = null

  // What lies under the pointer is known when it goes down: plotly then covers the page until it comes up again.
  document.addEventListener("pointerdown", (event) => { down = event.button === 0 ? press(data.chart, event) : null }, options)

  document.addEventListener("pointerup", (event) => {
    if (!down || Math.hypot(event.clientX - down.x, event.clientY - down.y) > 4) return // a drag zooms
    const { xaxis, yaxis } = down.plot.layout
    const column = place(xaxis.range, (event.clientX - down.area.left) / down.area.width)
    const row = place(yaxis.range, 1 - (event.clientY - down.area.top) / down.area.height)
    setTriggerValue("cell", [data.start + row, data.start + column])
  }, options)

  return () => listener.abort()
}

// Return where the pointer went down, the plot and its drawing area, or null if that wasn't on this chart's cells.
const press = (chart, event) => {
  const plot = event.target.closest?.(`.st-key-${CSS.escape(chart)}`)?.querySelector(".js-plotly-plot")
  const area = plot?.querySelector(".nsewdrag")?.getBoundingClientRect()
  const { clientX: x, clientY: y } = event
  const inside = area && x >= area.left && x <= area.right && y >= area.top && y <= area.bottom
  return inside ? { x, y, plot, area } : null
}

const place = ([low, high], share) => Math.round(Number(low) + share * (Number(high) - Number(low)))
