import type { MouseEvent, ReactNode } from "react";

export interface ButtonProps {
  readonly children: ReactNode;
  readonly onClick: () => void;
  /** Why the user cannot do this. The button stays reachable by keyboard, so that the reason can be read. */
  readonly refused?: string | null | undefined;
  readonly kind?: "plain" | "primary" | "quiet";
  readonly danger?: boolean;
  readonly name?: string;
  readonly label?: string;
}

export function Button({ children, onClick, refused, kind = "plain", danger = false, name, label }: ButtonProps) {
  const classes = ["button", kind === "plain" ? "" : kind, danger ? "danger" : ""].filter(Boolean).join(" ");
  const press = (event: MouseEvent): void => {
    event.stopPropagation();
    if (!refused) onClick();
  };
  return (
    <button
      type="button"
      className={classes}
      aria-disabled={refused ? true : undefined}
      aria-label={label}
      title={refused ?? undefined}
      data-action={name}
      onClick={press}
    >
      {children}
      {refused ? <span className="hidden-visually"> ({refused})</span> : null}
    </button>
  );
}
