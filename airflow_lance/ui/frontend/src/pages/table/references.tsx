import { ago, exact } from "../../lib/format";
import { useRefusal } from "../../me";
import { Badge } from "../../ui/badge";
import { Button } from "../../ui/button";
import { Section } from "../../ui/section";
import { Empty } from "../../ui/states";
import type { TabProps } from "./tab-props";

/** Tags and branches. */
export function References({ answer, ask, reload }: TabProps) {
  const refused = useRefusal();
  const { table, tags, branches } = answer;
  return (
    <Section id="references" title="Tags and branches" width="half">
      {tags.length + branches.length === 0 ? <Empty>The table has no tag and no branch.</Empty> : null}
      <ul className="stack">
        {tags.map((tag) => (
          <li key={`tag ${tag.name}`} className="flow">
            <Badge>{tag.name}</Badge>
            <span>
              version {tag.version}
              {tag.branch ? ` of branch ${tag.branch}` : ""}
            </span>
            <Button
              kind="quiet"
              danger
              label={`Remove the tag ${tag.name}`}
              refused={refused}
              onClick={() =>
                ask({
                  action: "tag",
                  table,
                  subject: `The tag ${tag.name} of version ${tag.version} is removed; a cleanup may then remove the version.`,
                  arguments: { name: tag.name, version: null, action: "delete" },
                  onEnd: reload,
                })
              }
            >
              Remove
            </Button>
          </li>
        ))}
        {branches.map((branch) => (
          <li key={`branch ${branch.name}`} className="flow">
            <span className="soft">branch</span> <span className="strong">{branch.name}</span>
            <span className="soft" title={exact(branch.created_at)}>
              from version {branch.parent_version}
              {branch.parent_branch ? ` of ${branch.parent_branch}` : ""}, made {ago(branch.created_at, answer.made_at)}
            </span>
          </li>
        ))}
      </ul>
    </Section>
  );
}
