import { useEffect, useRef, useState, type FormEvent, type ReactNode } from "react";

import type { Failure } from "../api/client";
import { Button } from "./button";
import { Problem } from "./states";

export interface DialogProps {
  readonly title: string;
  readonly children: ReactNode;
  readonly confirm: string;
  readonly danger?: boolean;
  readonly onConfirm: () => Promise<void>;
  readonly onClose: () => void;
}

/** A question before something happens. Escape and "Cancel" close it; nothing is sent before the answer. */
export function Dialog({ title, children, confirm, danger = false, onConfirm, onClose }: DialogProps) {
  const box = useRef<HTMLDialogElement>(null);
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<Failure | null>(null);
  useEffect(() => {
    if (box.current && !box.current.open) box.current.showModal();
  }, []);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (busy) return;
    setBusy(true);
    setFailure(null);
    onConfirm().then(onClose, (error: Failure) => {
      setFailure(error);
      setBusy(false);
    });
  };
  return (
    <dialog ref={box} onClose={onClose} aria-labelledby="dialog-title">
      <form onSubmit={submit}>
        <h2 id="dialog-title">{title}</h2>
        {children}
        {failure ? <Problem failure={failure} /> : null}
        <div className="buttons">
          <Button onClick={onClose} name="cancel">
            Cancel
          </Button>
          <button
            type="submit"
            className={`button primary ${danger ? "danger" : ""}`}
            aria-disabled={busy || undefined}
            data-action="confirm"
          >
            {busy ? "Sending …" : confirm}
          </button>
        </div>
      </form>
    </dialog>
  );
}
