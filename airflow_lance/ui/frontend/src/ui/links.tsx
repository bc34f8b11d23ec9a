import type { MouseEvent, ReactNode } from "react";

import type { Place } from "../api/types";
import { airflowHref, goInAirflow, standsAlone } from "../lib/host";

/** A click that the browser shall not treat in its own way (a new tab, a new window). */
function plain(event: MouseEvent): boolean {
  return event.button === 0 && !(event.metaKey || event.ctrlKey || event.shiftKey || event.altKey);
}

function follow(event: MouseEvent<HTMLAnchorElement>): void {
  const target = event.currentTarget;
  if (!plain(event) || standsAlone() || target.pathname === window.location.pathname) return;
  event.preventDefault();
  goInAirflow(target.href);
}

interface LinkProps {
  readonly href: string;
  readonly children: ReactNode;
  readonly title?: string;
  readonly current?: boolean;
  readonly className?: string;
}

/** A link to another of our pages. */
export function PageLink({ href, children, title, current = false, className }: LinkProps) {
  return (
    <a href={href} onClick={follow} title={title} className={className} aria-current={current ? "page" : undefined}>
      {children}
    </a>
  );
}

/** A dag, run or task of Airflow; its words alone when the user may not see it. */
export function PlaceLink({ place, short = false }: { place: Place | null; short?: boolean }) {
  if (place === null) return <span className="faint">–</span>;
  if (place.hidden || place.dag_id === null) {
    return (
      <span className="faint" title="You do not have the right to see this DAG.">
        hidden
      </span>
    );
  }
  const href = place.link === null ? null : airflowHref(place.link);
  const words = placeText(place, short);
  const where = [place.dag_id, place.run_id, place.try_number ? `try ${place.try_number}` : null, place.host].filter(Boolean).join(" · ");
  if (href === null) return <span title={where}>{words}</span>;
  return (
    <a href={href} onClick={follow} title={where} target={standsAlone() ? "_top" : undefined}>
      {words}
    </a>
  );
}

export function placeText(place: Place, short = false): string {
  const mapped = place.map_index !== null && place.map_index !== undefined && place.map_index >= 0 ? `[${place.map_index}]` : "";
  const task = place.task_id ? `${place.task_id}${mapped}` : null;
  const parts = short ? [place.dag_id, task] : [place.dag_id, place.run_id, task];
  return parts.filter(Boolean).join(" · ");
}
