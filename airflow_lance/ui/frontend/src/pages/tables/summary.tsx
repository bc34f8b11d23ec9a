import type { Budget, TablesAnswer } from "../../api/types";
import { bytes, count, gbHours, percent, plural } from "../../lib/format";
import { Figures, type Figure } from "../../ui/figures";

export function Summary({ summary, pending }: { summary: TablesAnswer["summary"]; pending: number }) {
  const { service_levels: levels, rewrite_factor: factor } = summary;
  const items: Figure[] = [
    { name: "Tables", value: count(summary.tables), note: attention(summary, pending) },
    { name: "Data", value: bytes(summary.num_bytes + summary.manifest_bytes), note: `${count(summary.num_rows)} rows, ${bytes(summary.manifest_bytes)} of it manifests` },
  ];
  if (levels) items.push({ name: `Service levels kept, ${levels.days} d`, value: percent(levels.kept), note: "looks that left nothing due" });
  if (summary.budget) items.push(budgetFigure(summary.budget));
  if (factor !== null) items.push({ name: "Rewrite factor", value: `${factor.toFixed(1)}×`, note: "bytes rewritten per byte written" });
  if (summary.dead_bytes !== null) items.push({ name: "Dead bytes", value: bytes(summary.dead_bytes), note: "not in the newest version" });
  return <Figures items={items} />;
}

function attention(summary: TablesAnswer["summary"], pending: number) {
  const parts = [];
  if (summary.errors) parts.push(<span key="e" className="bad">{plural(summary.errors, "error")}</span>);
  if (summary.attention) parts.push(<span key="a" className="warn">{summary.attention} need attention</span>);
  if (summary.late) parts.push(<span key="l" className="bad">{summary.late} late</span>);
  if (summary.unchecked) parts.push(<span key="u" className="soft">{summary.unchecked} not checked</span>);
  if (pending) parts.push(<span key="p" className="soft">{pending} not looked at yet</span>);
  if (summary.tables === 0) return <span className="soft">none found</span>;
  return parts.length ? <span className="flow tight">{parts}</span> : <span className="good">all are well</span>;
}

function budgetFigure(budget: Budget): Figure {
  const { spent, limit } = budget.gb_hours;
  const value = limit === null || spent < 0.1 ? gbHours(spent) : `${amount(spent)} of ${amount(limit)} GB-h`;
  return { name: "Upkeep today", value, note: limit === null || spent >= 0.1 ? quietText(budget) : `of ${amount(limit)} GB-h, ${quietText(budget)}` };
}

function amount(value: number): string {
  return value >= 10 ? value.toFixed(0) : value.toFixed(1);
}

export function quietText(budget: Budget): string {
  if (budget.quiet_hours === null) return "no quiet hours";
  return `${budget.is_quiet ? "quiet hours now" : "quiet hours"}: ${quietSpan(budget.quiet_hours)}`;
}

export function quietSpan([from = 0, to = 0]: readonly number[]): string {
  return `${clock(from)} to ${clock(to)} UTC`;
}

function clock(seconds: number): string {
  return `${String(Math.floor(seconds / 3600)).padStart(2, "0")}:${String(Math.floor((seconds % 3600) / 60)).padStart(2, "0")}`;
}
