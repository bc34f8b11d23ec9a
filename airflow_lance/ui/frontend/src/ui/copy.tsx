import { useState } from "react";

/** A long text with a button that copies it. */
export function CopyText({ text }: { text: string }) {
  const [copied, setCopied] = useState(false);
  const copy = (): void => {
    navigator.clipboard?.writeText(text).then(
      () => setCopied(true),
      () => setCopied(false),
    );
  };
  return (
    <span className="copy">
      <code>{text}</code>
      <button type="button" className="button quiet" onClick={copy} aria-label={`Copy ${text}`}>
        {copied ? "copied" : "copy"}
      </button>
    </span>
  );
}
