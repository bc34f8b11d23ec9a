import { useState, type ReactNode } from "react";

import { apiPath, post } from "../api/client";
import type { RunAnswer } from "../api/more-types";
import { Dialog } from "../ui/dialog";
import { useSay } from "../ui/toasts";
import { RunNote } from "./run-note";
import { wordsOf } from "./words";

export interface Request {
  readonly action: string;
  readonly table: { readonly id: string; readonly name: string } | null;
  readonly arguments?: Readonly<Record<string, unknown>>;
  /** Fields of the dialog; they are read when the user confirms. */
  readonly fields?: readonly FieldSpec[];
  /** What exactly is concerned, in a line of its own. */
  readonly subject?: ReactNode;
  readonly onEnd?: () => void;
}

export interface FieldSpec {
  readonly name: string;
  readonly label: string;
  readonly kind: "text" | "number" | "area";
  readonly value?: string;
  readonly hint?: string;
  readonly required?: boolean;
  /** An empty field takes away what was there: it is sent when it changed, and else left out. */
  readonly clears?: boolean;
}

/** Ask, then trigger a DAG run, then say where it runs. Nothing works in the API server itself. */
export function useAction(): { readonly ask: (request: Request) => void; readonly dialog: ReactNode } {
  const [request, setRequest] = useState<Request | null>(null);
  return {
    ask: setRequest,
    dialog: request ? <ActionDialog request={request} onClose={() => setRequest(null)} /> : null,
  };
}

function ActionDialog({ request, onClose }: { request: Request; onClose: () => void }) {
  const say = useSay();
  const words = wordsOf(request.action);
  const fields = request.fields ?? [];
  const [values, setValues] = useState<Readonly<Record<string, string>>>(() =>
    Object.fromEntries(fields.map((field) => [field.name, field.value ?? ""])),
  );
  const send = async (): Promise<void> => {
    const typed = argumentsOf(fields, values);
    const body = { action: request.action, table: request.table?.id ?? null, arguments: { ...request.arguments, ...typed } };
    const run = await post<RunAnswer>(apiPath(["actions"]), body);
    say(<RunNote title={words.title} run={run} onEnd={request.onEnd} />);
  };
  return (
    <Dialog title={words.title} confirm={words.confirm} danger={words.danger ?? false} onConfirm={send} onClose={onClose}>
      {request.table ? <p className="strong mono wrap">{request.table.name}</p> : null}
      {request.subject ? <p className="wrap">{request.subject}</p> : null}
      <p className="soft">{words.effect}</p>
      {fields.map((field) => (
        <label key={field.name} className="field">
          <span>{field.label}</span>
          <Input field={field} value={values[field.name] ?? ""} set={(value) => setValues((old) => ({ ...old, [field.name]: value }))} />
        </label>
      ))}
      <p className="small faint">This triggers a DAG run under your name. The dialog sends nothing before you confirm.</p>
    </Dialog>
  );
}

function Input({ field, value, set }: { field: FieldSpec; value: string; set: (value: string) => void }) {
  const shared = { name: field.name, required: field.required, value, placeholder: field.hint };
  if (field.kind === "area") return <textarea {...shared} rows={3} maxLength={1024} onChange={(event) => set(event.target.value)} />;
  return <input {...shared} type={field.kind} min={field.kind === "number" ? 0 : undefined} onChange={(event) => set(event.target.value)} />;
}

/** Empty fields are left out, but for those that take away what was there; numbers are sent as numbers. */
export function argumentsOf(fields: readonly FieldSpec[], values: Readonly<Record<string, string>>): Record<string, unknown> {
  const typed = fields.map((field) => {
    const text = (values[field.name] ?? "").trim();
    if (field.clears) return [field.name, text === (field.value ?? "") ? undefined : text] as const;
    return [field.name, text === "" ? undefined : field.kind === "number" ? Number(text) : text] as const;
  });
  return Object.fromEntries(typed.filter(([, value]) => value !== undefined));
}
