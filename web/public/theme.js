// Before anything is painted: a page that turns dark after it was shown light would flash.
try {
  const chosen = localStorage.getItem("theme");
  if (chosen) document.documentElement.dataset.theme = chosen;
} catch {
  // This browser keeps nothing: the page looks as the device does.
}
