// Copies the address of the page as it is when the button is pressed. Where the browser refuses (a page without https that
// isn't on this machine has no clipboard), the address stands in a field, selected and ready for Ctrl+C.
export default function ({ parentElement }) {
  const place = parentElement.querySelector(".copy-link")
  const [button, said, field] = ["button", ".said", "input"].map((name) => place.querySelector(name))
  button.onclick = async () => {
    const link = window.location.href
    try {
      await navigator.clipboard.writeText(link)
      field.hidden = true
      said.textContent = ""
      button.textContent = "Copied"
      setTimeout(() => { button.textContent = "Copy link" }, 2000)
    } catch {
      said.textContent = "Your browser doesn't let this page copy. Press Ctrl+C:"
      field.value = link
      field.hidden = false
      field.select()
    }
  }
}
