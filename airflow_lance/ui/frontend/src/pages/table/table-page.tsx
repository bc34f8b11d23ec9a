import type { ReactNode } from "react";

import { useAction } from "../../actions/use-action";
import { apiPath } from "../../api/client";
import type { TableAnswer } from "../../api/types";
import { useResource } from "../../api/use-resource";
import { whole } from "../../lib/format";
import { hrefOf, type Route } from "../../lib/router";
import { useTitle } from "../../lib/title";
import { PageLink } from "../../ui/links";
import { Loading, Problem } from "../../ui/states";
import { DiffTab } from "./diff-tab";
import { DoctorTab } from "./doctor-tab";
import { FailedTab } from "./failed-tab";
import { FragmentsTab } from "./fragments-tab";
import { IndicesTab } from "./indices-tab";
import { OverviewTab } from "./overview-tab";
import { RowsTab } from "./rows-tab";
import { SchemaTab } from "./schema-tab";
import { StagedTab } from "./staged-tab";
import { StorageTab } from "./storage-tab";
import type { TabProps } from "./tab-props";
import { TableHead } from "./table-head";
import { TableHistory } from "./table-history";
import { VersionsTab } from "./versions-tab";

interface Tab {
  readonly name: string;
  readonly title: string;
  readonly count?: (answer: TableAnswer) => number;
  readonly show: (props: TabProps) => ReactNode;
}

const TABS: readonly Tab[] = [
  { name: "", title: "Overview", show: (props) => <OverviewTab {...props} /> },
  { name: "versions", title: "Versions", show: (props) => <VersionsTab {...props} /> },
  { name: "fragments", title: "Fragments", show: (props) => <FragmentsTab {...props} /> },
  { name: "indices", title: "Indices", count: (answer) => answer.indices.length, show: (props) => <IndicesTab {...props} /> },
  { name: "schema", title: "Schema", show: (props) => <SchemaTab {...props} /> },
  { name: "staged", title: "Staged work", count: (answer) => answer.staged.length, show: (props) => <StagedTab {...props} /> },
  { name: "failed", title: "Failed rows", count: failedRows, show: (props) => <FailedTab {...props} /> },
  { name: "rows", title: "Rows", show: (props) => <RowsTab {...props} /> },
  { name: "storage", title: "Storage", show: (props) => <StorageTab {...props} /> },
  { name: "doctor", title: "Doctor", show: (props) => <DoctorTab {...props} /> },
  { name: "history", title: "Upkeep", show: (props) => <TableHistory {...props} /> },
];

function failedRows(answer: TableAnswer): number {
  return answer.declared.reduce((sum, column) => sum + column.failed_rows, 0);
}

export function TablePage({ id, route }: { id: string; route: Route }) {
  const table = useResource<TableAnswer>(apiPath(["tables", id]));
  const { ask, dialog } = useAction();
  useTitle(table.data?.table.name ?? "Table");
  const crumbs = (
    <p className="crumbs">
      <PageLink href={hrefOf("tables")}>Lance tables</PageLink> /
    </p>
  );
  if (table.data === null) {
    return (
      <>
        {crumbs}
        {table.failure ? <Problem failure={table.failure} retry={table.reload} /> : <Loading what="the table" />}
      </>
    );
  }
  const answer = table.data;
  const open = route.parts[1] ?? "";
  const props = { answer, route, ask, reload: table.reload };
  const tab = TABS.find((item) => item.name === open);
  return (
    <>
      {crumbs}
      <TableHead {...props} />
      <nav className="tabs part-tabs" aria-label="Parts of the table">
        {TABS.map((item) => (
          <PageLink key={item.name} href={hrefOf("table", item.name ? [id, item.name] : [id])} current={item.name === (open === "diff" ? "versions" : open)}>
            {item.title}
            {item.count?.(answer) ? <span className="faint"> {whole(item.count(answer))}</span> : null}
          </PageLink>
        ))}
      </nav>
      {table.failure ? <Problem failure={table.failure} retry={table.reload} /> : null}
      {open === "diff" ? <DiffTab {...props} /> : (tab ?? TABS[0])?.show(props)}
      {dialog}
    </>
  );
}
