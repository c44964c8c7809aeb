// Keeps a text in this browser. A session without one (null) hears once what is kept; "" forgets it.

export default function ({ data: { name, text }, setTriggerValue }) {
  try {
    if (text === null) {
      const kept = localStorage.getItem(name);
      if (kept) setTriggerValue("found", kept);
    } else if (text === "") localStorage.removeItem(name);
    else localStorage.setItem(name, text);
  } catch {
    // The browser keeps nothing for this page, or has no room: the deck lives as long as the tab.
  }
}
