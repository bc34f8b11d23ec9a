import type { DeclaredColumn } from "../../api/types";
import { ago, exact, percent, plural } from "../../lib/format";
import { hrefOf } from "../../lib/router";
import { PageLink, PlaceLink } from "../../ui/links";
import { Section } from "../../ui/section";

/** How fresh declared columns are known to be: rows that no refresh has seen as they are now may be stale. */
export function DeclaredColumns({ table, columns, now }: { table: string; columns: readonly DeclaredColumn[]; now: number }) {
  if (columns.length === 0) return null;
  return (
    <Section id="declared" title="Declared columns" note="rows that a refresh has seen as they are now" width="third">
      <ul className="coverage">
        {columns.map((column) => (
          <li key={column.name}>
            <span className="wrap strong" title={column.function}>
              {column.name}
            </span>
            <span className="soft small" title={exact(column.refreshed_at)}>
              {column.refreshed_at === null ? "never refreshed as a whole" : `refreshed ${ago(column.refreshed_at, now)}`}
              {column.refreshed_by ? (
                <>
                  {" by "}
                  <PlaceLink place={column.refreshed_by} />
                </>
              ) : null}
              {column.failed_rows ? (
                <>
                  {", "}
                  <PageLink href={hrefOf("table", [table, "failed"])}>{plural(column.failed_rows, "row")} failed</PageLink>
                </>
              ) : null}
            </span>
            <Fresh share={1 - column.stale_share} />
          </li>
        ))}
      </ul>
    </Section>
  );
}

function Fresh({ share }: { share: number }) {
  const fill = share >= 0.99 ? "fill-good" : share >= 0.8 ? "fill-warn" : "fill-bad";
  return (
    <span className="share" role="img" aria-label={`${percent(share)} of the rows are known to be fresh`}>
      <span className="bar">
        <i className={fill} style={{ width: `${share * 100}%` }} />
      </span>
      {percent(share)}
    </span>
  );
}
