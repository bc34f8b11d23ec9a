import type { HealthPart, TableRow } from "../../api/types";
import { bytes, duration, percent, plural } from "../../lib/format";

export function partText(part: HealthPart): string {
  return `${part.label} ${points(part)} (${valueText(part)})`;
}

export function valueText(part: HealthPart): string {
  if (part.unit === "share") return percent(part.value);
  if (part.unit === "bytes") return bytes(part.value);
  if (part.unit === "seconds") return duration(part.value);
  return plural(part.value, part.unit.replace(/s$/, ""), part.unit);
}

function points(part: HealthPart): string {
  return `−${Math.abs(Math.round(part.points))}`;
}

/** Why the score is what it is: every part takes its points away. */
export function HealthParts({ health }: { health: TableRow["health"] }) {
  if (health === null) return null;
  const parts = health.parts.filter((part) => part.points < 0);
  if (parts.length === 0) return <p className="soft">Nothing takes points away.</p>;
  return (
    <ul className="parts">
      {parts.map((part) => (
        <li key={part.code}>
          <b>{points(part)}</b>
          <span>{part.label}</span>
          <span className="soft">{valueText(part)}</span>
        </li>
      ))}
    </ul>
  );
}
