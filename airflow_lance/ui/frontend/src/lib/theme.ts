/** Light or dark: what Airflow shows, else what its switch says, else what the system prefers. */

import { useSyncExternalStore } from "react";

export type Theme = "light" | "dark";

const KEY = "theme"; // Airflow keeps its choice here, in the local storage of the origin.

export function chosenTheme(classes: readonly string[], stored: string | null, prefersDark: boolean): Theme {
  for (const theme of ["dark", "light"] as const) {
    if (classes.includes(theme)) return theme;
  }
  if (stored === "light" || stored === "dark") return stored;
  return prefersDark ? "dark" : "light";
}

export function useTheme(): Theme {
  return useSyncExternalStore(listen, read);
}

function read(): Theme {
  return chosenTheme([...document.documentElement.classList], readStored(), system().matches);
}

function listen(changed: () => void): () => void {
  const watcher = new MutationObserver(changed);
  watcher.observe(document.documentElement, { attributes: true, attributeFilter: ["class"] });
  const media = system();
  media.addEventListener("change", changed);
  window.addEventListener("storage", changed);
  return () => {
    watcher.disconnect();
    media.removeEventListener("change", changed);
    window.removeEventListener("storage", changed);
  };
}

function system(): MediaQueryList {
  return window.matchMedia("(prefers-color-scheme: dark)");
}

function readStored(): string | null {
  try {
    return window.localStorage.getItem(KEY);
  } catch {
    return null; // storage is closed to frames of some browsers
  }
}
