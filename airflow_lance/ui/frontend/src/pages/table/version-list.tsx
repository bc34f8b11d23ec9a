import type { Version } from "../../api/types";
import { ago, bytes, exact, plural, signed, whole } from "../../lib/format";
import { fillOf, versionText } from "../../lib/kinds";
import { hrefOf } from "../../lib/router";
import { useRefusal } from "../../me";
import { Badge } from "../../ui/badge";
import { Button } from "../../ui/button";
import { DataTable, type Column } from "../../ui/data-table";
import { PageLink, PlaceLink } from "../../ui/links";
import type { TabProps } from "./tab-props";

export function VersionList(props: TabProps & { versions: readonly Version[] }) {
  const refused = useRefusal();
  if (props.versions.length === 0) return null;
  return <DataTable label="Versions" columns={columns(props, refused)} rows={props.versions} keyOf={(version) => String(version.version)} />;
}

function columns({ answer, ask, reload }: TabProps, refused: string | null): readonly Column<Version>[] {
  const { table } = answer;
  const newest = table.version ?? 0;
  return [
    { name: "version", head: "Version", cell: (version) => <Number version={version} /> },
    { name: "operation", head: "Operation", cell: operation },
    { name: "rows", head: "Rows", cell: (version) => (version.rows_changed === null ? "–" : signed(version.rows_changed)), number: true },
    { name: "bytes", head: "Bytes", cell: (version) => bytes(version.bytes_added), number: true },
    { name: "writer", head: "Written by", cell: writers },
    { name: "when", head: "When", cell: (version) => <span title={exact(version.timestamp)}>{ago(version.timestamp, answer.made_at)}</span> },
    {
      name: "actions",
      head: "",
      cell: (version) => (
        <span className="row-actions">
          {version.version > 1 ? (
            <PageLink href={hrefOf("table", [table.id, "diff", String(version.version - 1), String(version.version)])} className="button quiet">
              Diff
            </PageLink>
          ) : null}
          <Button
            kind="quiet"
            name="tag"
            label={`Tag version ${version.version}`}
            refused={refused}
            onClick={() =>
              ask({
                action: "tag",
                table,
                subject: `Version ${version.version}`,
                arguments: { version: version.version, action: "set" },
                fields: [{ name: "name", label: "Name of the tag", kind: "text", required: true }],
                onEnd: reload,
              })
            }
          >
            Tag
          </Button>
          <Button
            kind="quiet"
            name="restore"
            label={`Restore version ${version.version}`}
            refused={refused ?? (version.version === newest ? "This is the newest version." : null)}
            onClick={() =>
              ask({
                action: "restore",
                table,
                subject: `Version ${version.version} becomes the newest, after ${newest}.`,
                arguments: { version: version.version, expected_version: newest },
                onEnd: reload,
              })
            }
          >
            Restore
          </Button>
        </span>
      ),
    },
  ];
}

function Number({ version }: { version: Version }) {
  return (
    <span className="flow tight">
      <span className="strong">{version.version}</span>
      {version.tags.map((tag) => (
        <Badge key={tag}>{tag}</Badge>
      ))}
    </span>
  );
}

function operation(version: Version) {
  const properties = [`Lance operation: ${version.operation ?? "unknown"}`, version.summary, ...Object.entries(version.properties).map(([key, value]) => `${key}: ${value}`)].filter(Boolean);
  return (
    <span title={properties.join("\n") || undefined}>
      <i className={`dot ${fillOf(version.kind)}`} />
      {versionText(version)}
      {version.rebased ? (
        <span className="small faint" title={`${plural(version.rebased, "commit")} of others between its read and its own`}>
          {" "}
          rebased over {whole(version.rebased)}
        </span>
      ) : null}
      {version.summary && !version.rows_changed ? <span className="line2 block">{version.summary}</span> : null}
    </span>
  );
}

function writers(version: Version) {
  const [first, ...others] = version.writers;
  if (first === undefined) return <span className="faint">unknown</span>;
  return (
    <span className="wrap">
      <PlaceLink place={first} />
      {others.length ? <span className="small faint"> and {others.length} more</span> : null}
    </span>
  );
}
