// What a first visit loads, held to a budget: bytes of compressed script and style, and files asked for; of the home page all bytes, fonts too. Reads the manifest of the build.
import { readdir, readFile, stat } from "node:fs/promises";
import { fileURLToPath } from "node:url";

const BYTES = 230_000;
const FILES = 30;
/** The letters of western languages; the browser asks for others when a page has them. */
const FIRST_FONTS = /^source-(sans-3|serif-4)-latin-wght-normal-.*\.woff2$/;
/** The page itself, theme.js, the sign, two fonts and the style sheet. */
const BESIDE = 6;

const built = fileURLToPath(new URL("../../src/holdfast/api/web_app/", import.meta.url));
const manifest = JSON.parse(await readFile(`${built}.vite/manifest.json`, "utf8"));

/** Everything that a chunk needs before it runs. */
function closure(key, found = new Set()) {
  if (found.has(key)) return found;
  found.add(key);
  for (const next of manifest[key].imports ?? []) closure(next, found);
  return found;
}

/** Bytes as they are sent; browsers on plain http take gzip only, all others brotli, which is less. */
async function weigh(files, ending = ".gz") {
  const sizes = await Promise.all(files.map((file) => stat(`${built}${file}${ending}`).catch(() => stat(`${built}${file}`))));
  return sizes.reduce((sum, one) => sum + one.size, 0);
}

const entry = Object.keys(manifest).find((key) => manifest[key].isEntry);
const pages = manifest[entry].dynamicImports;
const told = [];
for (const page of pages) {
  const around = page.startsWith("src/control/") ? closure("src/app/ControlShell.tsx") : [];
  const keys = [...new Set([...closure(entry), ...around, ...closure(page)])];
  const files = keys.map((key) => manifest[key].file).filter((file) => file.endsWith(".js"));
  const styles = [...new Set(keys.flatMap((key) => manifest[key].css ?? []))];
  told.push({ page: page.replace(/^src\//, ""), bytes: await weigh([...files, ...styles]), files: files.length + BESIDE });
  if (page === "src/home/HomePage.tsx") {
    const fonts = (await readdir(`${built}assets`)).filter((name) => FIRST_FONTS.test(name)).map((name) => `assets/${name}`);
    if (fonts.length !== 2) throw new Error(`expected two fonts, found ${fonts.join(", ")}`);
    told.push({ page: "home with its fonts, in brotli", bytes: await weigh([...files, ...styles, ...fonts, "index.html", "theme.js", "holdfast.svg"], ".br"), files: files.length + BESIDE });
  }
}
told.sort((a, b) => b.bytes - a.bytes);
for (const { page, bytes, files } of told) console.log(`${(bytes / 1000).toFixed(1).padStart(7)} KB  ${String(files).padStart(3)} files  ${page}`);
const over = told.filter(({ bytes, files }) => bytes > BYTES || files > FILES);
if (over.length) {
  console.error(`over the budget of ${BYTES / 1000} KB, compressed, or ${FILES} files on a first visit: ${over.map(({ page }) => page).join(", ")}`);
  process.exit(1);
}
