// Reports the cell under a click on a plotly map. The listener sits on the document, so that it outlives redrawn charts;
// each run of the component replaces the listener of the run before.

const listeners = new Map()

export default function ({ data, setTriggerValue, parentElement }) {
  listeners.get(data.chart)?.abort()
  const listener = new AbortController()
  listeners.set(data.chart, listener)
  let down = null

  const plotUnder = (event) => {
    const chart = event.target.closest?.(`.st-key-${CSS.escape(data.chart)}`)
    const plot = chart?.querySelector(".js-plotly-plot")
    const area = plot?.querySelector(".nsewdrag")?.getBoundingClientRect()
    if (!area || event.clientX < area.left || event.clientX > area.right) return null
    return event.clientY < area.top || event.clientY > area.bottom ? null : { plot, area }
  }

  document.addEventListener("pointerdown", (event) => { down = [event.clientX, event.clientY] }, { capture: true, signal: listener.signal })

  document.addEventListener("pointerup", (event) => {
    const found = plotUnder(event)
    const moved = !down || Math.hypot(event.clientX - down[0], event.clientY - down[1]) > 4 // a drag zooms
    if (!found || moved || event.button !== 0) return
    const { xaxis, yaxis } = found.plot.layout
    const column = place(xaxis.range, (event.clientX - found.area.left) / found.area.width)
    const row = place(yaxis.range, 1 - (event.clientY - found.area.top) / found.area.height)
    setTriggerValue("cell", [data.start + row, data.start + column])
  }, { capture: true, signal: listener.signal })

  return () => listener.abort()
}

const place = ([low, high], share) => Math.round(Number(low) + share * (Number(high) - Number(low)))
