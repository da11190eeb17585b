import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

const server = process.env.STATIONMASTER_SERVER ?? "http://127.0.0.1:8080";

export default defineConfig({
  plugins: [react()],
  resolve: { alias: { "~": fileURLToPath(new URL("./src", import.meta.url)) } },
  // web/build.py says where to.
  build: {
    target: "es2022",
    assetsInlineLimit: 0, // the server's policy allows no inline script or style
    modulePreload: { polyfill: false },
    // What the first view needs is one file, not one for each set of views that share a part of it.
    rolldownOptions: { output: { codeSplitting: { groups: [{ name: "page", tags: ["$initial"] }] } } },
  },
  // The page of `make dev` asks a server that runs already, for which it must seem to be that server's own page.
  server: {
    port: 5173,
    proxy: {
      "/api": {
        target: server,
        changeOrigin: true,
        configure: (proxy) =>
          proxy.on("proxyReq", (request, { headers }) => {
            if (headers.origin === `http://${headers.host}`) request.setHeader("origin", server);
          }),
      },
    },
  },
});
