import { useMemo } from "react";

import { stepText } from "../../actions/words";
import { useAction } from "../../actions/use-action";
import { apiPath } from "../../api/client";
import type { PlanAnswer, PlannedStep, Step } from "../../api/more-types";
import type { Budget, Spending } from "../../api/types";
import { usePolled } from "../../api/use-polled";
import { bytes, count, duration, gbHours, plural } from "../../lib/format";
import { hrefOf } from "../../lib/router";
import { useTitle } from "../../lib/title";
import { useMe } from "../../me";
import { Button } from "../../ui/button";
import { DataTable } from "../../ui/data-table";
import { Figures, type Figure } from "../../ui/figures";
import { PageLink, PlaceLink } from "../../ui/links";
import { Section } from "../../ui/section";
import { Empty, Loading, Problem } from "../../ui/states";
import { quietSpan } from "../tables/summary";
import { NoPolicy } from "./no-policy";

export function PlanPage() {
  const me = useMe();
  useTitle("Plan");
  const plan = usePolled<PlanAnswer>(apiPath(["plan"]));
  const { ask, dialog } = useAction();
  if (plan.data === null) return plan.failure ? <Problem failure={plan.failure} retry={plan.reload} /> : <Loading what="the plan" />;
  const { data } = plan;
  if (data.policy === null && data.error === null) return <NoPolicy />;
  const refused = me.rights.run_plan ? null : (me.rights.plan_reason ?? "You may not run the plan.");
  return (
    <>
      <div className="head">
        <div className="title">
          <h1>What the policy would do now</h1>
          <p className="meta">
            {data.policy ? <span className="mono">{data.policy.name}</span> : null}
            {data.plan_dag ? (
              <span>
                done by <PlaceLink place={data.plan_dag} />
              </span>
            ) : null}
            {data.pending ? <span>{plural(data.pending, "table")} still being looked at</span> : null}
          </p>
        </div>
        <div className="actions">
          <Button name="refresh" onClick={plan.reload}>
            {plan.loading ? "Planning …" : "Plan anew"}
          </Button>
          <Button kind="primary" name="run_plan" refused={refused} onClick={() => ask({ action: "run_plan", table: null, onEnd: plan.reload })}>
            Run plan
          </Button>
        </div>
      </div>
      {data.error ? <Problem failure={{ status: 0, code: "policy", ...data.error }} /> : <Loaded plan={data} />}
      {dialog}
    </>
  );
}

function Loaded({ plan }: { plan: PlanAnswer }) {
  return (
    <>
      <Figures items={figures(plan)} />
      <div className="sections">
        {plan.alarms.length ? (
          <Section id="alarms" title="Alarms" note="tables that were not looked after in time">
            <ul className="stack">
              {plan.alarms.map((alarm) => (
                <li key={`${alarm.uri}${alarm.action}`} className="notice bad">
                  <span>
                    <TableLink step={alarm} />: {alarm.reason}
                  </span>
                </li>
              ))}
            </ul>
          </Section>
        ) : null}
        <Section id="steps" title="Steps" note="best gain for its cost first" flush>
          {plan.steps.length ? <Steps steps={plan.steps} /> : <Empty>Nothing is due.</Empty>}
        </Section>
        <Section id="skipped" title="Not done, and why" note={plural(plan.skipped.length, "step")} flush>
          {plan.skipped.length ? <Skipped steps={plan.skipped} /> : <Empty>Everything that was looked at is done.</Empty>}
        </Section>
      </div>
    </>
  );
}

function figures(plan: PlanAnswer): Figure[] {
  const items: Figure[] = [
    { name: "Steps", value: plan.steps.length, note: `${plural(new Set(plan.steps.map((step) => step.uri)).size, "table")}` },
  ];
  if (plan.cost) {
    items.push({ name: "Price", value: gbHours(plan.cost.gb_hours), note: `${bytes(plan.cost.bytes_read)} read, ${bytes(plan.cost.bytes_written)} written, ${duration(plan.cost.seconds)}` });
  }
  if (plan.budget) items.push(...budgetFigures(plan.budget));
  return items;
}

function budgetFigures(budget: Budget): Figure[] {
  const left = ({ spent, limit }: Spending, text: (value: number) => string, name: string): Figure[] =>
    limit === null ? [] : [{ name, value: text(Math.max(0, limit - spent)), note: <Spent spent={spent} limit={limit} words={`${text(spent)} of ${text(limit)} spent today`} /> }];
  return [
    ...left(budget.gb_hours, gbHours, "Budget left"),
    ...left(budget.bytes, bytes, "Bytes left"),
    ...left(budget.seconds, duration, "Time left"),
    { name: "Quiet hours", value: budget.is_quiet ? "now" : budget.quiet_hours ? "not now" : "none", note: budget.quiet_hours ? quietSpan(budget.quiet_hours) : null },
  ];
}

function Spent({ spent, limit, words }: { spent: number; limit: number; words: string }) {
  const share = Math.min(1, limit > 0 ? spent / limit : 1);
  return (
    <span className="stack tight">
      <span className="bar">
        <i className={share >= 1 ? "fill-bad" : share >= 0.8 ? "fill-warn" : "fill-2"} style={{ width: `${share * 100}%` }} />
      </span>
      {words}
    </span>
  );
}

function Steps({ steps }: { steps: readonly PlannedStep[] }) {
  return (
    <DataTable
      label="Steps of the plan"
      rows={steps}
      keyOf={(step) => `${step.uri} ${step.action}`}
      columns={[
        { name: "table", head: "Table", cell: (step) => <TableLink step={step} />, by: (step) => step.name },
        { name: "action", head: "Step", cell: (step) => <span className="nowrap">{stepText(step.action)}</span>, by: (step) => step.action },
        { name: "reason", head: "Why", cell: (step) => <span className="soft prose">{step.reason}</span> },
        { name: "urgency", head: "Urgency", cell: (step) => `${step.urgency.toFixed(1)}×`, by: (step) => step.urgency, number: true, title: "How far the service level is exceeded: 1 is at the level." },
        { name: "gain", head: "Gain", cell: (step) => count(step.gain), by: (step) => step.gain, number: true },
        { name: "read", head: "Read", cell: (step) => bytes(step.bytes_read), by: (step) => step.bytes_read, number: true },
        { name: "written", head: "Written", cell: (step) => bytes(step.bytes_written), by: (step) => step.bytes_written, number: true },
        { name: "seconds", head: "Time", cell: (step) => duration(step.seconds), by: (step) => step.seconds, number: true },
        { name: "cost", head: "Price", cell: (step) => gbHours(step.gb_hours), by: (step) => step.gb_hours, number: true },
      ]}
    />
  );
}

/** The same reason is often that of many tables: they stand together. */
function Skipped({ steps }: { steps: readonly Step[] }) {
  const groups = useMemo(() => groupsOf(steps), [steps]);
  return (
    <DataTable
      label="Steps that are not done"
      rows={groups}
      keyOf={(group) => `${group.action} ${group.reason}`}
      columns={[
        { name: "action", head: "Step", cell: (group) => <span className="nowrap">{stepText(group.action)}</span>, by: (group) => group.action },
        { name: "reason", head: "Why not", cell: (group) => <span className="prose">{group.reason}</span>, by: (group) => group.reason },
        { name: "tables", head: "Tables", cell: (group) => <Members steps={group.steps} />, by: (group) => group.steps.length, first: "descending" },
      ]}
    />
  );
}

function Members({ steps }: { steps: readonly Step[] }) {
  return (
    <span className="members">
      {steps.slice(0, 4).map((step) => (
        <TableLink key={step.uri} step={step} />
      ))}
      {steps.length > 4 ? <span className="soft">and {steps.length - 4} more</span> : null}
    </span>
  );
}

export interface Group {
  readonly action: string;
  readonly reason: string;
  readonly steps: readonly Step[];
}

export function groupsOf(steps: readonly Step[]): readonly Group[] {
  const found = new Map<string, Step[]>();
  for (const step of steps) {
    const key = JSON.stringify([step.action, step.reason]);
    found.set(key, [...(found.get(key) ?? []), step]);
  }
  return [...found.values()].map((members) => ({ action: members[0]?.action ?? "", reason: members[0]?.reason ?? "", steps: members }));
}

function TableLink({ step }: { step: Step }) {
  if (step.table === null) return <span title={step.uri}>{step.name}</span>;
  return (
    <PageLink href={hrefOf("table", [step.table])} title={step.uri}>
      {step.name}
    </PageLink>
  );
}
