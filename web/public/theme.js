// Before anything is painted: a page that turns dark after it was shown light would flash.
try {
  const chosen = localStorage.getItem("theme");
  if (chosen) document.documentElement.dataset.theme = chosen;
  // The pages that the server writes have a list to choose from; the application has its own.
  addEventListener("DOMContentLoaded", () => {
    const list = document.querySelector("select#theme");
    if (!list) return;
    list.hidden = false;
    list.value = chosen ?? "";
    list.addEventListener("change", () => {
      if (list.value) localStorage.setItem("theme", list.value);
      else localStorage.removeItem("theme");
      if (list.value) document.documentElement.dataset.theme = list.value;
      else delete document.documentElement.dataset.theme;
    });
  });
} catch {
  // This browser keeps nothing: the page looks as the device does.
}
