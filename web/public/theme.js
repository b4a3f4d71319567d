// Before anything is painted: a page that turns dark after it was shown light would flash.
const chosen = localStorage.getItem("theme");
if (chosen) document.documentElement.dataset.theme = chosen;
