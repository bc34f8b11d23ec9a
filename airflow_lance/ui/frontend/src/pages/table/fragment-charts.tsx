import type { Fragments } from "../../api/types";
import { bytes, plural, whole } from "../../lib/format";
import { BarChart } from "../../ui/bar-chart";
import { Empty } from "../../ui/states";

export function SizesChart({ sizes }: { sizes: Fragments["sizes"] }) {
  if (sizes.every((size) => size.fragments === 0)) return <Empty>The table has no fragment.</Empty>;
  const bars = sizes.map((size) => ({
    name: size.label,
    value: size.fragments,
    text: whole(size.fragments),
    fill: size.small ? "fill-warn" : "fill-2",
    title: `${plural(size.fragments, "fragment")} of ${size.label}, together ${bytes(size.bytes)}${size.small ? "; small" : ""}`,
  }));
  return <BarChart bars={bars} label="Fragments by size" />;
}

export function TiersChart({ tiers }: { tiers: Fragments["tiers"] }) {
  if (tiers.length === 0) return <Empty>The table has no fragment.</Empty>;
  const bars = tiers.map((tier) => ({
    name: tier.label,
    value: tier.fragments,
    text: `${whole(tier.fragments)} · ${bytes(tier.bytes)}`,
    fill: tier.tier === 0 ? "fill-2" : "fill-warn",
    title: `${plural(tier.fragments, "fragment")}, ${plural(tier.rows, "row")}, ${bytes(tier.bytes)}`,
  }));
  return <BarChart bars={bars} label="Fragments by tier" />;
}

export function DeletionsChart({ deletions }: { deletions: Fragments["deletions"] }) {
  if (deletions.every((item) => item.fragments === 0)) return <Empty>No fragment has deleted rows.</Empty>;
  const bars = deletions.map((item, at) => ({
    name: item.label,
    value: item.fragments,
    text: whole(item.fragments),
    fill: at >= deletions.length / 2 ? "fill-bad" : "fill-warn",
    title: `${plural(item.fragments, "fragment")} with ${whole(item.deleted_rows)} deleted rows`,
  }));
  return <BarChart bars={bars} label="Fragments by share of deleted rows" />;
}
