import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";

/** One script with a chart, for `benchmarks/page_chart.py`. */
export default defineConfig({
  resolve: { alias: { "~": fileURLToPath(new URL("../src", import.meta.url)) } },
  define: { "process.env.NODE_ENV": '"production"' },
  publicDir: false,
  build: {
    emptyOutDir: true,
    lib: {
      entry: fileURLToPath(new URL("./chart.tsx", import.meta.url)),
      formats: ["iife"],
      name: "bench",
      fileName: "chart",
    },
  },
});
