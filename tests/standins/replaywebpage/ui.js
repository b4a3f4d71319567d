// A stand-in for ReplayWeb.page's `ui.js`: the element registers the worker, then frames the index that the worker
// serves, and that one frames the archived page, which the worker reads out of the package.
customElements.define("replay-web-page", class extends HTMLElement {
  async connectedCallback() {
    const base = this.getAttribute("replaybase");
    await navigator.serviceWorker.register(`${base}sw.js?serveIndex=1`, { scope: base });
    const asked = new URLSearchParams({ source: new URL(this.getAttribute("source"), location.href), url: this.getAttribute("url") });
    const frame = document.createElement("iframe");
    frame.style.cssText = "width: 100%; height: 100%; border: 0";
    frame.src = `${base}?${asked}`;
    frame.addEventListener("load", () => {
      if (!frame.contentWindow.navigator.serviceWorker.controller) setTimeout(() => frame.contentWindow.location.reload(), 100);
    });
    this.append(frame);
  }
});
customElements.define("replay-app-main", class extends HTMLElement {
  connectedCallback() {
    const frame = document.createElement("iframe");
    frame.style.cssText = "width: 100%; height: 600px; border: 0";
    frame.src = `w/page${location.search}`;
    this.append(frame);
  }
});
