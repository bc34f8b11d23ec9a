/** The pages standing alone, below `<root>/lance/`. */

import { createRoot } from "react-dom/client";

import { App } from "./app";
import { adoptStyles } from "./style";

adoptStyles();
const root = document.getElementById("root");
if (root === null) throw new Error("The page has no element with the id root.");
createRoot(root).render(<App />);
