// What a first visit loads, held to a budget: bytes of compressed script, and files asked for. Reads the manifest of the build.
import { readFile, stat } from "node:fs/promises";
import { fileURLToPath } from "node:url";

const SCRIPT_BYTES = 250_000;
const FILES = 30;
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

/** Bytes as gzip sends them; browsers that take brotli load less. */
async function weigh(file) {
  const packed = await stat(`${built}${file}.gz`).catch(() => stat(`${built}${file}`));
  return packed.size;
}

const entry = Object.keys(manifest).find((key) => manifest[key].isEntry);
const pages = manifest[entry].dynamicImports;
const told = [];
for (const page of pages) {
  const around = page.startsWith("src/control/") ? closure("src/app/ControlShell.tsx") : [];
  const files = [...new Set([...closure(entry), ...around, ...closure(page)])].map((key) => manifest[key].file).filter((file) => file.endsWith(".js"));
  const bytes = (await Promise.all(files.map(weigh))).reduce((sum, one) => sum + one, 0);
  told.push({ page: page.replace(/^src\//, ""), bytes, files: files.length + BESIDE });
}
told.sort((a, b) => b.bytes - a.bytes);
for (const { page, bytes, files } of told) console.log(`${(bytes / 1000).toFixed(1).padStart(7)} KB  ${String(files).padStart(3)} files  ${page}`);
const over = told.filter(({ bytes, files }) => bytes > SCRIPT_BYTES || files > FILES);
if (over.length) {
  console.error(`over the budget of ${SCRIPT_BYTES / 1000} KB of compressed script or ${FILES} files on a first visit: ${over.map(({ page }) => page).join(", ")}`);
  process.exit(1);
}
