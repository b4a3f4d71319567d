// Runs before the first script of an archived page. The sandbox gives the page no origin, so the browser refuses
// cookies and storage with an error, and an address that a script builds leads to the root of the replay host. This
// puts stand-ins in memory in place of the first, and leads the second into the archive. Nothing is kept, nothing is
// shared, and nothing here guards anybody: the headers do (holdfast.replay.policy), whatever a page does to this.
(function shim(page) {
"use strict";
const own = document.currentScript;
if (own) own.remove();
const mark = Symbol.for("holdfast.shim");
if (self[mark]) return;
Object.defineProperty(self, mark, { value: true });

// Each step stands alone: what one browser refuses must not take the rest away.
const attempt = (act) => { try { act(); } catch (error) { /* the page goes on without it */ } };
const replace = (owner, name, descriptor) => Object.defineProperty(
  owner, name, { configurable: true, enumerable: true, ...descriptor });

// --- cookies and storage, in the memory of this document

const jar = new Map();
attempt(() => replace(Document.prototype, "cookie", {
  get() { return Array.from(jar, ([name, value]) => (name ? name + "=" + value : value)).join("; "); },
  set(text) {
    const [pair, ...attributes] = String(text).split(";");
    const at = pair.indexOf("=");
    const name = at < 0 ? "" : pair.slice(0, at).trim();
    let ends = Infinity;
    for (const attribute of attributes) {
      const [word, value = ""] = attribute.split("=").map((part) => part.trim());
      if (/^max-age$/i.test(word)) { ends = Number(value) > 0 ? Infinity : 0; break; }
      if (/^expires$/i.test(word)) ends = Number.isNaN(Date.parse(value)) ? Infinity : Date.parse(value);
    }
    if (ends <= Date.now()) jar.delete(name);
    else if (name || pair.trim()) jar.set(name, pair.slice(at + 1).trim());
  },
}));

const storage = () => {
  const items = new Map();
  const methods = {
    getItem: (name) => (items.has(String(name)) ? items.get(String(name)) : null),
    setItem: (name, value) => { items.set(String(name), String(value)); },
    removeItem: (name) => { items.delete(String(name)); },
    clear: () => items.clear(),
    key: (number) => Array.from(items.keys())[number] ?? null,
  };
  return new Proxy(Object.create(Storage.prototype), {
    get: (target, name) => {
      if (name === "length") return items.size;
      if (Object.hasOwn(methods, name)) return methods[name];
      return items.has(name) ? items.get(name) : typeof name === "symbol" ? target[name] : undefined;
    },
    set: (target, name, value) => { items.set(String(name), String(value)); return true; },
    has: (target, name) => items.has(name) || name === "length" || name in methods,
    deleteProperty: (target, name) => { items.delete(name); return true; },
    ownKeys: () => Array.from(items.keys()),
    getOwnPropertyDescriptor: (target, name) => (items.has(name)
      ? { value: items.get(name), writable: true, enumerable: true, configurable: true } : undefined),
  });
};
for (const name of ["localStorage", "sessionStorage"]) {
  attempt(() => { const kept = storage(); replace(self, name, { get: () => kept }); });
}
// What cannot be stood in for is taken away, so that scripts that ask first find that it is not there.
attempt(() => { delete Navigator.prototype.serviceWorker; });
for (const name of ["indexedDB", "caches", "cookieStore"]) {
  attempt(() => { if (name in self) replace(self, name, { get: () => undefined }); });
}

// --- addresses

const ARCHIVED = /^(?:\/![\w-]+)?\/web\/(?:~[\w-]+\/)?[0-9]{1,14}(?:[a-z]{2}_)?\/(.*)$/s;
const host = new URL(page.origin).host;

function behind(url) {
  const found = ARCHIVED.exec(url.pathname + url.search + url.hash);
  return found ? found[1] : null;
}

function liveBase() {
  try {
    const base = new URL(document.baseURI);
    const live = base.host === host ? behind(base) : null;
    return new URL(live ?? page.url);
  } catch (error) { return new URL(page.url); }
}

// Returns the address on the live web that a reference means; null for what is none (data:, blob:, #part).
function live(reference) {
  const text = String(reference).trim();
  if (!text || text[0] === "#") return null;
  const base = liveBase();
  try {
    let url = new URL(text, base);
    if (url.host === host || url.origin === base.origin) {
      const inside = behind(url);
      if (inside !== null) url = new URL(inside);
      else if (url.host === host) url = new URL(url.pathname + url.search + url.hash, base);
    }
    return url.protocol === "http:" || url.protocol === "https:" ? url : null;
  } catch (error) { return null; }
}

function isOwnSite(url) {
  const name = url.hostname;
  return page.pass && (name === page.site || name.endsWith("." + page.site));
}

// Returns where in the archive a reference leads; what a script may read goes with the pass of its site.
function into(reference, modifier, readable = true) {
  const url = live(reference);
  if (url === null) return reference;
  const pass = readable && isOwnSite(url) ? "~" + page.pass + "/" : "";
  return page.origin + page.root + "/web/" + pass + page.digits + modifier + "/" + url.href;
}

const navigation = (reference) => into(reference, page.modifier, false);

// --- requests of scripts

attempt(() => {
  const RealRequest = self.Request, realFetch = self.fetch;
  // A sandbox has no cookies to send, and no origin that a request could be the same as.
  const options = (init) => {
    if (!init || typeof init !== "object") return init;
    const plain = { ...init };
    if ("credentials" in plain) plain.credentials = "omit";
    if (plain.mode === "same-origin") plain.mode = "cors";
    return plain;
  };
  const moved = (request) => {
    const target = into(request.url, "oe_");
    const mode = request.mode === "no-cors" ? "no-cors" : "cors";
    return target === request.url ? request : new RealRequest(new RealRequest(target, request), { mode, credentials: "omit" });
  };
  self.Request = class Request extends RealRequest {
    constructor(input, init) {
      super(input instanceof RealRequest ? input : into(input, "oe_"), options(init));
    }
  };
  self.fetch = function fetch(input, init) {
    const target = input instanceof RealRequest ? moved(input) : into(input, "oe_");
    return realFetch.call(self, target, options(init));
  };
});
attempt(() => {
  const open = XMLHttpRequest.prototype.open, credentials = new WeakMap();
  XMLHttpRequest.prototype.open = function (...given) {
    given[1] = into(given[1], "oe_");
    return open.apply(this, given);
  };
  replace(XMLHttpRequest.prototype, "withCredentials", {
    get() { return credentials.get(this) || false; },
    set(value) { credentials.set(this, Boolean(value)); },
  });
});
attempt(() => {
  const Real = self.EventSource;
  self.EventSource = class EventSource extends Real {
    constructor(url) { super(into(url, "oe_")); }
  };
});
attempt(() => {
  const send = Navigator.prototype.sendBeacon;
  Navigator.prototype.sendBeacon = function (url, data) { return send.call(this, into(url, "oe_"), data); };
});

// --- where scripts send the window

attempt(() => {
  const open = self.open;
  self.open = function (url, ...rest) { return open.call(self, url ? navigation(url) : url, ...rest); };
});
for (const name of ["pushState", "replaceState"]) {
  attempt(() => {
    const real = History.prototype[name];
    History.prototype[name] = function (state, title, url) {
      return url === undefined || url === null
        ? real.call(this, state, title) : real.call(this, state, title, navigation(url));
    };
  });
}

// --- elements that scripts make

const KINDS = {
  IMG: { src: "im_", srcset: "im_" }, SOURCE: { src: "oe_", srcset: "im_" }, SCRIPT: { src: "js_" },
  LINK: { href: "" }, IFRAME: { src: "if_" }, FRAME: { src: "fw_" }, AUDIO: { src: "oe_" },
  VIDEO: { src: "oe_", poster: "im_" }, TRACK: { src: "oe_" }, EMBED: { src: "oe_" }, OBJECT: { data: "oe_" },
  INPUT: { src: "im_" },
};
const isFrame = (modifier) => modifier === "if_" || modifier === "fw_";

function value(element, name, text) {
  const modifiers = KINDS[element.tagName];
  if (!modifiers || !(name in modifiers)) return text;
  if (name === "srcset") {
    return String(text).replace(/(^|,\s+)([^\s,]\S*?)(?=,?(?:\s|$))/g, (all, before, url) => before + into(url, "im_"));
  }
  let modifier = modifiers[name];
  if (element.tagName === "LINK") modifier = /stylesheet/i.test(element.rel || "") ? "cs_" : "oe_";
  return into(text, modifier, !isFrame(modifier));
}

const MARKUP = /(\x3c(?:script|img|iframe|frame|link|embed|source|video|audio|track|input)\b[^>]*?\s(src|href|poster)\s*=\s*)(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))/gi;

function markup(text) {
  text = String(text);
  if (!/\s(?:src|href|poster)\s*=/i.test(text)) return text;
  return text.replace(MARKUP, (all, before, name, double, single, bare) => {
    const tag = /^\x3c(\w+)/.exec(before)[1].toUpperCase();
    const element = { tagName: tag, rel: /\srel\s*=\s*["']?stylesheet/i.test(all) || tag === "LINK" ? "stylesheet" : "" };
    const written = (double ?? single ?? bare).replace(/&amp;/g, "&");
    const target = String(value(element, name.toLowerCase(), written));
    return target === written ? all : before + '"' + target.replace(/&/g, "&amp;").replace(/"/g, "&quot;") + '"';
  });
}

function wrapProperty(owner, name, change) {
  attempt(() => {
    const known = Object.getOwnPropertyDescriptor(owner.prototype, name);
    if (!known || !known.set) return;
    replace(owner.prototype, name, {
      get: known.get, set(text) { known.set.call(this, text === null ? text : change(this, text)); },
    });
  });
}

for (const [owner, ...names] of [
  ["HTMLImageElement", "src", "srcset"], ["HTMLSourceElement", "src", "srcset"], ["HTMLScriptElement", "src"],
  ["HTMLLinkElement", "href"], ["HTMLIFrameElement", "src"], ["HTMLFrameElement", "src"], ["HTMLMediaElement", "src"],
  ["HTMLVideoElement", "poster"], ["HTMLTrackElement", "src"], ["HTMLEmbedElement", "src"],
  ["HTMLObjectElement", "data"], ["HTMLInputElement", "src"],
]) {
  for (const name of names) if (self[owner]) wrapProperty(self[owner], name, (element, text) => value(element, name, text));
}
// A document inside an attribute gets these stand-ins too; one in a blob: or about:blank frame cannot.
const inner = (text) => "\x3cscript>(" + shim + ")(" + JSON.stringify(page).replace(/\x3c/g, "\\u003c") + ")\x3c/script>" + markup(text);
wrapProperty(HTMLIFrameElement, "srcdoc", (element, text) => inner(text));
for (const name of ["innerHTML", "outerHTML"]) wrapProperty(Element, name, (element, text) => markup(text));
attempt(() => {
  const set = Element.prototype.setAttribute;
  Element.prototype.setAttribute = function (name, text) {
    const lower = String(name).toLowerCase();
    if (lower === "srcdoc" && this.tagName === "IFRAME") return set.call(this, name, inner(text));
    return set.call(this, name, value(this, lower, text));
  };
});
attempt(() => {
  const insert = Element.prototype.insertAdjacentHTML;
  Element.prototype.insertAdjacentHTML = function (where, text) { return insert.call(this, where, markup(text)); };
});
for (const name of ["write", "writeln"]) {
  attempt(() => {
    const real = Document.prototype[name];
    Document.prototype[name] = function (...texts) { return real.call(this, markup(texts.join(""))); };
  });
}

// --- our own viewer around the page: it is told what is shown, and where a link leads, and moves its bar along

// It believes nothing of this: whatever is told, it shows the capture that the archive has for that address.
const around = (() => {
  if (page.modifier !== "mp_" || self === top || parent !== top) return [];
  const above = location.ancestorOrigins ? Array.from(location.ancestorOrigins) : null;
  return above === null ? page.apps : page.apps.filter((origin) => above[0] === origin);
})();
const tell = (what, url) => {
  for (const origin of around) parent.postMessage({ holdfast: what, url, digits: page.digits }, origin);
};
attempt(() => tell("shown", page.url));

// Returns whether the viewer goes there: only where it is known to be there, else the page goes by itself.
function hand(event, link) {
  if (!around.length || !location.ancestorOrigins || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return false;
  const url = live(link.getAttribute("href"));
  if (url === null || url.href.split("#")[0] === page.url.split("#")[0]) return false;
  event.preventDefault();
  tell("go", url.href);
  return true;
}

// Links and forms are led into the archive when they are used: scripts take addresses apart with them before that.
addEventListener("click", (event) => {
  const link = event.target instanceof Element ? event.target.closest("a[href], area[href]") : null;
  if (event.defaultPrevented || !link || link.closest("#holdfast-bar")) return;
  attempt(() => { if (!hand(event, link)) lead(link, "href"); });
});
addEventListener("submit", (event) => {
  if (event.defaultPrevented) return;
  attempt(() => lead(event.target, "action"));
  if (event.submitter) attempt(() => lead(event.submitter, "formaction"));
});
attempt(() => {
  const submit = HTMLFormElement.prototype.submit;
  HTMLFormElement.prototype.submit = function () { attempt(() => lead(this, "action")); return submit.call(this); };
});
function lead(element, name) {
  const written = element.getAttribute(name);
  if (written === null || /^\s*(?:$|#|(?:\/![\w-]+)?\/web\/[0-9])/.test(written)) return;
  const target = navigation(written);
  if (target !== written) element.setAttribute(name, target);
}

// --- drawings from another file: a page without an origin may not refer into one, so it is brought into the page

const drawings = new Map();
const XLINK = "http://www.w3.org/1999/xlink";

async function bring(address) {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error("not in this archive");
  const drawing = new DOMParser().parseFromString(await answer.text(), "image/svg+xml").documentElement;
  const shelf = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  shelf.setAttribute("style", "position:absolute;width:0;height:0;overflow:hidden");
  shelf.setAttribute("aria-hidden", "true");
  for (const child of Array.from(drawing.childNodes)) {
    if (child.nodeName !== "script") shelf.append(document.importNode(child, true));
  }
  document.body.append(shelf);
}

function draw(use) {
  const reference = use.getAttribute("href") || use.getAttributeNS(XLINK, "href") || "";
  const at = reference.indexOf("#");
  if (at < 1) return;
  const address = reference.slice(0, at);
  if (!drawings.has(address)) drawings.set(address, bring(address));
  drawings.get(address).then(() => {
    use.removeAttributeNS(XLINK, "href");
    use.setAttribute("href", reference.slice(at));
  }, () => {});
}

// What came into the page on another way (a template, a parsed document) is set right once it is there.
function mend(node) {
  if (node.nodeType !== 1) return;
  for (const name in KINDS[node.tagName] || {}) {
    const written = node.getAttribute(name);
    if (written && !/^(?:https?:\/\/[^/]+)?(?:\/![\w-]+)?\/web\//.test(written) && !/^\s*(?:data|blob|about|javascript):/i.test(written)) {
      node.setAttribute(name, written);
    }
  }
  if (node.localName === "use") draw(node);
}
const watched = Object.keys(KINDS).join(",").toLowerCase() + ",use";
attempt(() => new MutationObserver((changes) => {
  for (const change of changes) {
    for (const node of change.addedNodes) {
      attempt(() => { mend(node); if (node.querySelectorAll) node.querySelectorAll(watched).forEach(mend); });
    }
  }
}).observe(document, { childList: true, subtree: true }));

// --- our bar: not in a frame, and below a header that stays at the top

function settle() {
  const bar = document.getElementById("holdfast-bar");
  if (!bar) return;
  if (self !== top) { bar.remove(); return; }
  if (/flex|grid/.test(getComputedStyle(document.body).display)) document.documentElement.insertBefore(bar, document.body);
  bar.style.marginTop = "0px";
  const box = bar.getBoundingClientRect();
  if (scrollY > 0 || box.top < 0) return;
  let lowest = 0;
  for (const part of [0.1, 0.5, 0.9]) {
    for (const found of document.elementsFromPoint(innerWidth * part, box.top + 8)) {
      for (let element = found; element && element !== bar; element = element.parentElement) {
        if (getComputedStyle(element).position !== "fixed") continue;
        const bottom = element.getBoundingClientRect().bottom;
        if (bottom < innerHeight / 2) lowest = Math.max(lowest, bottom);
      }
    }
  }
  if (lowest > box.top) bar.style.marginTop = lowest - box.top + "px";
}
addEventListener("DOMContentLoaded", () => attempt(settle));
addEventListener("load", () => attempt(settle));
})(
