// A stand-in for ReplayWeb.page's `sw.js`: answers for its index and for archived pages, with the policy that the real
// one sends, and lets everything else through.
const POLICY = "default-src 'unsafe-eval' 'unsafe-inline' 'self' data: blob: mediastream: ws: wss: ; form-action 'self' ; object-src 'none'";
const BASE = new URL("./", self.location.href).pathname;
self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));
self.addEventListener("fetch", (event) => {
  const url = new URL(event.request.url);
  if (url.origin !== self.location.origin) return;
  if (url.pathname === BASE) event.respondWith(page("<script src=ui.js></script><replay-app-main></replay-app-main>"));
  else if (url.pathname === `${BASE}w/page`) event.respondWith(replayed(url.searchParams));
});

const page = (body) => new Response(`<!doctype html>${body}`, { headers: { "Content-Type": "text/html", "Content-Security-Policy": POLICY } });

async function replayed(asked) {
  const files = unzipped(await (await fetch(asked.get("source"), { headers: { Range: "bytes=0-" } })).arrayBuffer());
  const index = new TextDecoder().decode(await gunzipped(files.get("indexes/index.cdx.gz")));
  const lines = index.split("\n").filter(Boolean).map((line) => JSON.parse(line.slice(line.indexOf("{"))));
  const found = lines.find((line) => line.url === asked.get("url"));
  const start = Number(found.offset);
  const record = await gunzipped(files.get(`archive/${found.filename}`).slice(start, start + Number(found.length)));
  const text = new TextDecoder().decode(record);
  return page(text.split("\r\n\r\n").slice(2).join("\r\n\r\n"));
}

const gunzipped = (bytes) => new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();

function unzipped(buffer) {
  const view = new DataView(buffer), files = new Map();
  let at = buffer.byteLength - 22;
  while (view.getUint32(at, true) !== 0x06054b50) at -= 1;
  let entry = view.getUint32(at + 16, true);
  for (let left = view.getUint16(at + 10, true); left > 0; left -= 1) {
    const [size, name, extra, comment, place] = [view.getUint32(entry + 20, true), view.getUint16(entry + 28, true), view.getUint16(entry + 30, true), view.getUint16(entry + 32, true), view.getUint32(entry + 42, true)];
    const start = place + 30 + view.getUint16(place + 26, true) + view.getUint16(place + 28, true);
    files.set(new TextDecoder().decode(new Uint8Array(buffer, entry + 46, name)), buffer.slice(start, start + size));
    entry += 46 + name + extra + comment;
  }
  return files;
}
