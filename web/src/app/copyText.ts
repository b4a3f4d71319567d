/** Take a text to the clipboard; false if the browser does not let us. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Without https there is no clipboard to write to; copying what is selected still works.
    return copySelected(text);
  }
}

function copySelected(text: string): boolean {
  const box = document.createElement("textarea");
  box.value = text;
  box.readOnly = true;
  box.className = "fixed opacity-0";
  const focused = document.activeElement;
  // What lies outside an open dialog cannot be selected.
  (document.querySelector("dialog[open]") ?? document.body).append(box);
  box.select();
  try {
    return document.execCommand("copy");
  } catch {
    return false;
  } finally {
    box.remove();
    if (focused instanceof HTMLElement) focused.focus();
  }
}
