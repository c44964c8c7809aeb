// A side channel: small data that changes often (a selection, a pin) beside a component whose large data does not.
// Streamlit sends a component's data whole at each change; a component that did not change costs about 100 bytes.
export default function ({ data, parentElement }) {
  const element = parentElement.querySelector(".attnviz-note-place");
  element.dataset.attnvizNote = `${data.of} ${data.slot}`;
  element.attnvizNote = data.says;
  window.dispatchEvent(new CustomEvent("attnviz-note", { detail: data.of }));
}
