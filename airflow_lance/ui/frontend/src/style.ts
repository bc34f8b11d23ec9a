import css from "./styles/index.css?inline";

/** Put our styles beside those of the page, once. A constructed sheet needs no place in the document and no right to inline style. */
export function adoptStyles(): void {
  const marked = document as Document & { lanceStyles?: boolean };
  if (marked.lanceStyles) return;
  marked.lanceStyles = true;
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(css);
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
}
