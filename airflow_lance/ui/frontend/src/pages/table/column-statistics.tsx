import { apiPath } from "../../api/client";
import type { ColumnAnswer } from "../../api/more-types";
import { useResource } from "../../api/use-resource";
import { bytes, percent, plural, whole } from "../../lib/format";
import { Loading, Problem } from "../../ui/states";
import { CellView } from "./row-table";

/** Nulls, extremes, distinct and frequent values of one column. */
export function ColumnStatistics({ id, path }: { id: string; path: string }) {
  const found = useResource<ColumnAnswer>(apiPath(["tables", id, "column"], { path }));
  if (found.data === null) return found.failure ? <Problem failure={found.failure} retry={found.reload} /> : <Loading what="the column" />;
  const { data } = found;
  return (
    <div className="stack tight statistics">
      <dl className="facts">
        {factsOf(data).map(([name, value]) => (
          <div key={name} className="fact">
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {data.top.length ? (
        <p className="small wrap">
          <span className="soft">most frequent: </span>
          {data.top.map((item, at) => (
            <span key={at}>
              {at ? ", " : ""}
              <CellView cell={item.value} /> <span className="faint">× {whole(item.count)}</span>
            </span>
          ))}
        </p>
      ) : null}
      {data.complete ? null : (
        <p className="small soft">
          Of the first {whole(data.rows)} of {plural(data.total_rows, "row")}.
        </p>
      )}
    </div>
  );
}

function factsOf(data: ColumnAnswer): readonly (readonly [string, React.ReactNode])[] {
  const all: readonly (readonly [string, React.ReactNode, boolean])[] = [
    ["nulls", data.nulls ? `${whole(data.nulls)} (${percent(data.nulls / Math.max(1, data.rows))})` : "none", true],
    ["NaN", whole(data.nan), data.nan > 0],
    ["smallest", <CellView cell={data.min} />, data.min !== null],
    ["largest", <CellView cell={data.max} />, data.max !== null],
    ["mean", <CellView cell={data.mean} />, data.mean !== null],
    ["distinct values", data.distinct === null ? "more than 10,000" : whole(data.distinct), data.min !== null],
    ["lengths", data.lengths ? `${whole(data.lengths[0])} to ${whole(data.lengths[1])}` : "", data.lengths !== null],
    ["size", bytes(data.bytes), data.bytes !== null],
  ];
  return all.filter(([, , isKnown]) => isKnown).map(([name, value]) => [name, value] as const);
}
