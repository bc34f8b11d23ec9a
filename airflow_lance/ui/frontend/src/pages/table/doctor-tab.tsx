import { useState } from "react";

import { apiPath } from "../../api/client";
import type { DoctorAnswer, Finding } from "../../api/more-types";
import { useResource } from "../../api/use-resource";
import { wordsOf } from "../../actions/words";
import { bytes, count, percent } from "../../lib/format";
import { useRefusal } from "../../me";
import { Badge, type Tone } from "../../ui/badge";
import { Button } from "../../ui/button";
import { CopyText } from "../../ui/copy";
import { Section } from "../../ui/section";
import { Empty, Loading, Problem } from "../../ui/states";
import type { TabProps } from "./tab-props";

const TONES: Readonly<Record<string, Tone>> = { error: "bad", warning: "warn" };

export function DoctorTab(props: TabProps) {
  const [deep, setDeep] = useState(false);
  const doctor = useResource<DoctorAnswer>(apiPath(["tables", props.answer.table.id, "doctor"], { deep: deep || undefined }));
  const look = (
    <Button name="deep" refused={deep ? "The doctor has read every file." : null} onClick={() => setDeep(true)}>
      Read every file
    </Button>
  );
  return (
    <div className="sections">
      <Section id="doctor" title="Findings" note={deep ? "from all files" : "from the manifest and listings"} end={look}>
        {doctor.data ? <Findings {...props} findings={doctor.data.findings} /> : doctor.failure ? <Problem failure={doctor.failure} retry={doctor.reload} /> : <Loading what="the findings" />}
      </Section>
    </div>
  );
}

function Findings({ findings, ...props }: TabProps & { findings: readonly Finding[] }) {
  if (findings.length === 0) return <Empty>The table is healthy as far as the doctor looked.</Empty>;
  return (
    <ul className="findings">
      {findings.map((finding) => (
        <li key={`${finding.code} ${finding.title}`}>
          <Found {...props} finding={finding} />
        </li>
      ))}
    </ul>
  );
}

function Found({ finding, answer, ask, reload }: TabProps & { finding: Finding }) {
  const refused = useRefusal();
  const { action } = finding;
  return (
    <>
      <span className="flow">
        <Badge tone={TONES[finding.severity] ?? "plain"}>{finding.severity}</Badge>
        <b>{finding.title}</b>
        <span className="soft">{sizeText(finding)}</span>
        {action ? (
          <span className="push">
            <Button name={action} refused={refused} onClick={() => ask({ action, table: answer.table, onEnd: reload })}>
              {wordsOf(action).button}
            </Button>
          </span>
        ) : null}
      </span>
      <span className="soft">{finding.cost}</span>
      <CopyText text={finding.cure} />
    </>
  );
}

function sizeText(finding: Finding): string {
  if (finding.unit === "bytes") return bytes(finding.size);
  if (finding.unit === "share") return percent(finding.size);
  return `${count(finding.size)} ${finding.size === 1 ? finding.unit.replace(/^(\w+)s$/, "$1") : finding.unit}`;
}
