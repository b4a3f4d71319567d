// Compressed twins beside every file of the build that compresses: the server sends what a browser accepts and packs nothing itself.
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import type { Plugin } from "vite";

const TEXT = /\.(js|css|html|svg|json|webmanifest|txt)$/;
/** Below this a packet is a packet. */
const LEAST_BYTES = 800;

async function compress(folder: string) {
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (!entry.isFile() || !TEXT.test(entry.name)) continue;
    const body = await readFile(path);
    if (body.length < LEAST_BYTES) continue;
    await writeFile(`${path}.gz`, gzipSync(body, { level: 9 }));
    await writeFile(`${path}.br`, brotliCompressSync(body, { params: { [constants.BROTLI_PARAM_SIZE_HINT]: body.length } }));
  }
}

/** The last step of a build. */
export function compressed(): Plugin {
  let folder = "";
  return {
    name: "compressed",
    apply: "build",
    enforce: "post",
    configResolved(config) {
      folder = resolve(config.root, config.build.outDir);
    },
    closeBundle: () => compress(folder),
  };
}
