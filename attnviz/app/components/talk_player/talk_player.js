// Lays a talk over the whole page, in a frame of its own that hears the keys; Escape takes it away.

export default function ({ data, setTriggerValue }) {
  document.querySelector(".attnviz-talk")?.remove();
  const frame = document.createElement("iframe");
  frame.className = "attnviz-talk";
  frame.title = "Talk";
  frame.allow = "fullscreen";
  frame.style.cssText = "position:fixed;inset:0;width:100vw;height:100vh;border:0;z-index:1000001;background:#fff";
  const address = URL.createObjectURL(new Blob([data.html], { type: "text/html" }));
  frame.src = address;
  const listener = new AbortController();
  const leave = () => {
    listener.abort();
    frame.remove();
    URL.revokeObjectURL(address);
  };
  addEventListener("message", (event) => {
    if (event.source !== frame.contentWindow || event.data?.attnvizTalk !== "leave") return;
    leave();
    setTriggerValue("left", true);
  }, { signal: listener.signal });
  frame.addEventListener("load", () => frame.contentWindow.focus());
  document.body.append(frame);
  return leave;
}
