import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";
import { compressed } from "./tools/compressed.ts";

const api = process.env.HOLDFAST_API ?? "http://127.0.0.1:8060";
/** What the server answers itself; everything else is a page of this application. */
const served = ["/api", "/web", "/cdx", "/docs", "/openapi.json", "/report", "/signin", "/signout", "/setup", "/account", "/health", "/metrics"];

export default defineConfig({
  resolve: { alias: { "@": new URL("./src", import.meta.url).pathname } },
  plugins: [react(), tailwindcss(), compressed()],
  build: {
    outDir: "../src/holdfast/api/web_app",
    emptyOutDir: true,
    // For tools/budget.mjs; the server serves nothing whose name begins with a dot.
    manifest: true,
    // The policy of the server allows no inline data: fonts and pictures are files.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 400,
    // What many pages share is one file, and one more in the control room; a first visit asks for twenty files, not for forty.
    rolldownOptions: {
      output: {
        codeSplitting: {
          groups: [
            { name: "shared", test: /\/src\/(design|app|api|language(?!\/control))\/|lucide-react/, minShareCount: 3, priority: 2 },
            { name: "control", test: /\/src\/(language\/control|control\/live)\//, minShareCount: 2, priority: 1 },
          ],
        },
      },
    },
  },
  server: { proxy: Object.fromEntries(served.map((path) => [path, { target: api, changeOrigin: false }])) },
  test: { include: ["src/**/*.test.ts", "src/**/*.test.tsx"] },
});
