import { defineConfig } from "vite";

// Two builds of one source, with fixed names: LANCE_PART=plugin takes Airflow's own React, the other brings it along.
const plugin = process.env["LANCE_PART"] === "plugin";

export default defineConfig({
  define: { "process.env.NODE_ENV": JSON.stringify("production") },
  publicDir: false,
  build: {
    outDir: "../dist",
    emptyOutDir: false,
    target: "es2022",
    modulePreload: false,
    sourcemap: false,
    rollupOptions: {
      input: plugin ? "src/plugin.tsx" : "src/main.tsx",
      external: plugin ? ["react", "react/jsx-runtime", "react-dom"] : [],
      output: {
        format: "iife",
        entryFileNames: plugin ? "lance.umd.js" : "app.js",
        ...(plugin ? { globals: { react: "React", "react/jsx-runtime": "ReactJSXRuntime", "react-dom": "ReactDOM" } } : {}),
      },
    },
  },
});
