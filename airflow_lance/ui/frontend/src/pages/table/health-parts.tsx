import type { HealthPart, HealthScore } from "../../api/types";
import { bytes, duration, percent, plural } from "../../lib/format";

/** A line for each part, and why the files are not among them. */
export function healthText(health: HealthScore): string {
  const lines = health.parts.map(partText);
  if (health.unchecked !== null) lines.push(`Not checked: ${health.unchecked}.`);
  return lines.join("\n") || "nothing is wrong";
}

function partText(part: HealthPart): string {
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
export function HealthParts({ health }: { health: HealthScore | null }) {
  if (health === null) return null;
  const parts = health.parts.filter((part) => part.points < 0);
  const note = health.unchecked === null ? null : <p className="small warn">Whether its files are there was not checked: {health.unchecked}.</p>;
  if (parts.length === 0) return note ?? <p className="soft">Nothing takes points away.</p>;
  return (
    <>
      {note}
      <ul className="parts">
        {parts.map((part) => (
          <li key={part.code}>
            <b>{points(part)}</b>
            <span>{part.label}</span>
            <span className="soft">{valueText(part)}</span>
          </li>
        ))}
      </ul>
    </>
  );
}
