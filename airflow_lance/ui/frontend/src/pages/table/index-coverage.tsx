import type { Index } from "../../api/types";
import { percent } from "../../lib/format";
import { Empty } from "../../ui/states";

export function IndexCoverage({ indices }: { indices: readonly Index[] }) {
  if (indices.length === 0) return <Empty>The table has no index.</Empty>;
  return (
    <ul className="coverage">
      {indices.map((index) => (
        <li key={index.name}>
          <span className="wrap strong">{index.name}</span>
          <span className="soft small">{index.type}</span>
          <Coverage value={index.coverage} />
        </li>
      ))}
    </ul>
  );
}

export function Coverage({ value }: { value: number }) {
  const fill = value >= 0.9 ? "fill-good" : value >= 0.5 ? "fill-warn" : "fill-bad";
  return (
    <span className="share" role="img" aria-label={`covers ${percent(value)} of the rows`}>
      <span className="bar">
        <i className={fill} style={{ width: `${value * 100}%` }} />
      </span>
      {percent(value)}
    </span>
  );
}
