import type { Change } from "../../api/more-types";

const MARKS: Readonly<Record<string, readonly [string, string]>> = { added: ["+", "good"], removed: ["−", "bad"] };

/** What came, went or changed: "+ price  int32", "− old", "~ price  int32 → int64". */
export function ChangeList({ changes }: { changes: readonly Change[] }) {
  return (
    <ul className="changes">
      {changes.map((change) => {
        const [mark, tone] = MARKS[change.change] ?? ["~", "warn"];
        const name = change.path ?? change.name ?? change.key ?? "";
        return (
          <li key={name}>
            <span className={`mono strong ${tone}`} aria-label={change.change}>
              {mark}
            </span>
            <span className="strong wrap">{name}</span>
            <span className="soft mono wrap">{[change.before, change.after].filter(Boolean).join(" → ")}</span>
          </li>
        );
      })}
    </ul>
  );
}
