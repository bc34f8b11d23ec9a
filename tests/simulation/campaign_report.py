"""What a campaign has shown so far, for people."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from lance_core.errors import NotFoundError
from tests.simulation.campaign import Outcome, outcomes_of
from tests.simulation.scenario import ORPHANS


def reported(folder: Path) -> str:
    """Totals, a line for each scenario and store, orphans and refusals by kind, and how to replay what went wrong."""
    about = folder / "campaign.json"
    if not about.exists():
        raise NotFoundError(f"{folder} has no campaign", cure="Pass the folder of `--campaign`.")
    told = json.loads(about.read_text())
    return "\n".join([f"sources {told['sources']}", f"commit  {told['commit']}", "", *_lines(folder, outcomes_of(folder))])


def _lines(folder: Path, outcomes: list[Outcome]) -> Iterator[str]:
    tried, new = sum(item.tried for item in outcomes), sum(item.new for item in outcomes)
    spent, problems = sum(item.seconds for item in outcomes), [text for item in outcomes for text in item.problems]
    rate = new / spent if spent else 0.0
    yield f"{tried:,} schedules, {new:,} distinct, {len(problems):,} problems"
    yield f"{spent:,.0f} seconds of processor time: {rate:,.0f} distinct schedules a second"
    yield ""
    yield f"{'scenario':<26} {'store':<9} {'tried':>10} {'distinct':>10} {'seconds':>8} {'problems':>8}"
    pairs = dict.fromkeys((item.scenario, item.store) for item in outcomes)
    for pair in sorted(pairs):
        mine = [item for item in outcomes if (item.scenario, item.store) == pair]
        tried, new = sum(item.tried for item in mine), sum(item.new for item in mine)
        spent, wrong = sum(item.seconds for item in mine), sum(len(item.problems) for item in mine)
        yield f"{pair[0]:<26} {pair[1]:<9} {tried:>10,} {new:>10,} {spent:>8,.0f} {wrong:>8,}"
    yield ""
    yield "files that stayed after garbage collection, over all schedules:"
    orphans = _summed([Counter(item.orphans) for item in outcomes])
    yield from [f"  {orphans[kind]:>10,}  {kind}: {about}" for kind, about in ORPHANS.items()]
    yield "schedules in which actors or the recovery were refused:"
    refusals = _summed([Counter(item.refusals) for item in outcomes])
    yield from [f"  {count:>10,}  {kind}" for kind, count in refusals.most_common()]
    if problems:
        yield "problems:"
        yield from [f"  {text}" for text in problems]
        names = dict.fromkeys(text.partition(": ")[0] for text in problems)
        yield from [f"  python -m tests.simulation.simulate --replay {folder / name}" for name in names]


def _summed(counters: list[Counter[str]]) -> Counter[str]:
    found: Counter[str] = Counter()
    for counter in counters:
        found.update(counter)
    return found
