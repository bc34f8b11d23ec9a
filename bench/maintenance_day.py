"""A day of fifty tables under a policy, by a simulated clock, beside the same day with an hourly compaction of everything.

::

    python -m bench.maintenance_day

Tables are descriptions (fragments with rows and files); planning, tiers, ranking and budget are the real code.
Writers append, upsert, delete and backfill (rows, and a new column every other hour), an outside writer commits to some
tables too, maintenance runs each hour. The day before the one that is measured lets the tables settle.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from lance_core.dataset.maintain.column_merge_plan import ColumnMergePlan, plan_column_merges
from lance_core.dataset.maintain.compact_options import CompactionOptions
from lance_core.dataset.maintain.compact_plan import CompactionGroups, plan_compaction
from lance_core.dataset.maintain.compact_tiers import tier_of
from lance_core.format.fragment import DataFile, DeletionFile, Fragment
from lance_core.format.schema import NO_PARENT, Field, Schema
from lance_core.maintenance.observe import Observation, SpreadColumns, Tier, compaction_options, merge_options
from lance_core.maintenance.plan import plan_maintenance
from lance_core.maintenance.policy import Budget, Policy, ServiceLevels
from lance_core.maintenance.price import Cost, Measured, learn

DAY, MINUTE = 86400, 60
BYTES_PER_ROW = 200
BYTES_PER_VALUE = 8
COLUMN_SECONDS = 7200
LEVELS = ServiceLevels(max_versions=300, keep_versions=20, keep_seconds=4 * 3600, min_fragments=48)


@dataclass
class SimulatedTable:
    """One table: its fragments, versions and index coverage, and how it is written to."""

    uri: str
    every: int
    rows: int
    style: str
    fragments: list[Fragment] = field(default_factory=list)
    versions: list[float] = field(default_factory=lambda: [0.0])
    unindexed: int = 0
    next_id: int = 0
    written_rows: int = 0
    num_columns: int = 1
    changes: int = 0

    @property
    def schema(self) -> Schema:
        """The columns that there are by now."""
        return Schema(tuple(Field(number, f"c{number}", NO_PARENT, "int64") for number in range(self.num_columns)))

    def _fragment(self, rows: int) -> Fragment:
        """A new fragment, all columns in one file."""
        self.next_id += 1
        fields = tuple(range(self.num_columns))
        file = DataFile(f"{self.next_id}.lance", fields, fields, 2, 1, file_size_bytes=rows * BYTES_PER_ROW)
        return Fragment(id=self.next_id, files=(file,), physical_rows=rows)

    def add(self, rows: int, now: float) -> None:
        """Append a fragment."""
        self.fragments.append(self._fragment(rows))
        self.unindexed += rows
        self.written_rows += rows
        self.versions.append(now)

    def delete(self, share: float, draw: random.Random, now: float) -> None:
        """Delete a share of the rows of one fragment."""
        at = draw.randrange(len(self.fragments))
        item = self.fragments[at]
        deleted = min(item.physical_rows - 1, item.num_deleted_rows + int(share * item.physical_rows))
        if deleted > 0:
            self.fragments[at] = replace(item, deletion_file=DeletionFile("bitmap", 1, 1, deleted))
        self.versions.append(now)

    def add_column(self, now: float) -> None:
        """Compute a column for all rows: a further file beside those of every fragment."""
        number, self.num_columns = self.num_columns, self.num_columns + 1
        for at, item in enumerate(self.fragments):
            size = item.physical_rows * BYTES_PER_VALUE
            file = DataFile(f"{item.id}.{number}.lance", (number,), (0,), 2, 1, file_size_bytes=size)
            self.fragments[at] = replace(item, files=(*item.files, file))
            self.written_rows += size // BYTES_PER_ROW
        self.versions.append(now)

    def merge_columns(self, plan: ColumnMergePlan, now: float) -> int:
        """Merge column files; return the bytes written."""
        merged = {merge.fragment.id: merge for merge in plan.merges}
        for at, item in enumerate(self.fragments):
            if item.id in merged:
                merge = merged[item.id]
                fields = tuple(sorted(field for file in merge.files for field in file.fields))
                self.changes += 1
                new = DataFile(f"m{self.changes}.lance", fields, fields, 2, 1, file_size_bytes=merge.num_bytes)
                kept = tuple(file for file in item.files if file not in merge.files)
                self.fragments[at] = replace(item, files=(*kept, new))
        self.versions.append(now)
        return plan.num_bytes

    def rewrite(self, plan: CompactionGroups, now: float) -> int:
        """Carry a compaction out; return the rows written."""
        gone = {item.id for group in plan.groups for item in group}
        made = [sum(item.num_rows for item in group) for group in plan.groups]
        self.fragments = [item for item in self.fragments if item.id not in gone]
        for rows in made:
            self.fragments.append(self._fragment(rows))
        self.versions.append(now)
        return sum(made)


@dataclass
class Day:
    """What a day came to: rewritten rows for each written row, the share of time within the service levels, and errors."""

    written: int = 0
    rewritten: int = 0
    kept: int = 0
    looks: int = 0
    predicted: int = 0
    real: int = 0
    most_fragments: int = 0
    most_files: int = 0

    @property
    def rewrite_factor(self) -> float:
        """Rows rewritten for each row written."""
        return self.rewritten / max(self.written, 1)

    @property
    def levels_kept(self) -> float:
        """Share of looks, one a minute and table, at which the table was within its levels."""
        return self.kept / max(self.looks, 1)

    @property
    def prediction_error(self) -> float:
        """How far predicted bytes are from real ones, as a share."""
        return abs(self.predicted - self.real) / max(self.real, 1)


def simulate_day(*, by_policy: bool, num_tables: int = 50, seed: int = 1) -> Day:
    """Run a day and return what it came to."""
    draw = random.Random(seed)
    tables = list(_tables(draw, num_tables))
    day, history = Day(), list[Measured]()
    policy = Policy(base_uri="/lake", levels=LEVELS, budget=Budget(backoff_seconds=0, max_concurrent=4))
    for now in range(0, 2 * DAY, MINUTE):
        if now == DAY:
            day = Day()
            for table in tables:
                table.written_rows = 0
        for table in tables:
            _write(table, now, draw)
        if now % 3600 == 0:
            if by_policy:
                _maintain(tables, policy, now, day, history, draw)
            else:
                _compact_everything(tables, now, day)
        for table in tables:
            day.looks += 1
            day.kept += _is_within_levels(table)
            day.most_fragments = max(day.most_fragments, len(table.fragments))
            day.most_files = max(day.most_files, _most_files(table))
    day.written = sum(table.written_rows for table in tables)
    return day


def observation_of(table: SimulatedTable, now: float) -> Observation:
    """What `observe` would see of the table."""
    plan = plan_compaction(table.fragments, _options(table), read_version=1)
    tiers: dict[int, list[int]] = {}
    for item in table.fragments:
        tier = tier_of(item.num_rows, target=LEVELS.target_rows_per_fragment, fanout=LEVELS.tier_fanout)
        sums = tiers.setdefault(tier, [0, 0])
        sums[0] += 1
        sums[1] += item.num_rows
    physical = sum(item.physical_rows for item in table.fragments)
    rows = sum(item.num_rows for item in table.fragments)
    taken = sum(item.physical_rows for group in plan.groups for item in group)
    merges = _column_merges(table)
    rewritten = {item.id for group in plan.groups for item in group}
    apart = replace(merges, merges=tuple(merge for merge in merges.merges if merge.fragment.id not in rewritten))
    expired = [at for at in table.versions[: -LEVELS.keep_versions] if at < now - LEVELS.keep_seconds]
    return Observation(
        uri=table.uri, observed_at=now, version=len(table.versions), written_at=table.versions[-1],
        num_rows=rows, physical_rows=physical, num_fragments=len(table.fragments), num_bytes=physical * BYTES_PER_ROW,
        tiers=tuple(Tier(tier, *sums, sums[1] * BYTES_PER_ROW) for tier, sums in sorted(tiers.items())),
        fragments_in=sum(map(len, plan.groups)), fragments_out=len(plan.groups), rows_in=plan.num_rows,
        bytes_in=taken * BYTES_PER_ROW, bytes_out=plan.num_rows * BYTES_PER_ROW,
        spread=_spread(merges), spread_apart=_spread(apart),
        unindexed_rows={"id_idx": min(table.unindexed, rows)}, index_segments={"id_idx": 1},
        num_versions=len(table.versions), expired_versions=len(expired), expired_manifest_bytes=len(expired) * 4096,
    )  # fmt: skip


def _column_merges(table: SimulatedTable) -> ColumnMergePlan:
    return plan_column_merges(table.fragments, table.schema, merge_options(LEVELS), read_version=1)


def _spread(plan: ColumnMergePlan) -> SpreadColumns:
    return SpreadColumns(len(plan.merges), plan.num_files, plan.num_bytes)


def _most_files(table: SimulatedTable) -> int:
    return max(len(item.files) for item in table.fragments)


def _options(table: SimulatedTable) -> CompactionOptions:
    physical = sum(item.physical_rows for item in table.fragments)
    deleted = sum(item.num_deleted_rows for item in table.fragments)
    return compaction_options(LEVELS, deleted_share=deleted / physical, num_bytes=physical * BYTES_PER_ROW)


def _tables(draw: random.Random, count: int) -> Iterator[SimulatedTable]:
    for number in range(count):
        style = ("append", "upsert", "delete", "backfill", "outside")[number % 5]
        table = SimulatedTable(
            f"/lake/t{number}.lance",
            every=draw.choice((1, 2, 5, 15, 60)),
            rows=draw.choice((500, 2000, 10_000)),
            style=style,
        )
        for _ in range(draw.randint(1, 5)):
            table.add(draw.randint(200_000, 1_500_000), 0)
        table.unindexed = table.written_rows = 0
        yield table


def _write(table: SimulatedTable, now: int, draw: random.Random) -> None:
    if table.style == "backfill" and now % COLUMN_SECONDS == 0:
        table.add_column(now)
    if now // MINUTE % table.every:
        return
    table.add(draw.randint(table.rows // 2, table.rows * 2), now)
    if table.style in ("upsert", "delete", "outside") and draw.random() < 0.3:
        table.delete(0.002, draw, now)
    if table.style == "backfill" and now % (6 * 3600) == 0:
        table.add(40 * table.rows, now)


def _maintain(
    tables: list[SimulatedTable], policy: Policy, now: int, day: Day, history: list[Measured], draw: random.Random
) -> None:
    by_uri = {table.uri: table for table in tables}
    seen = [observation_of(table, now) for table in tables]
    plan = plan_maintenance(seen, policy, now=now, spent=Cost(), rates=learn(history))
    for step in plan.steps:
        table = by_uri[step.uri]
        if step.action == "compact":
            groups = plan_compaction(table.fragments, _options(table), read_version=1)
            taken = sum(item.physical_rows for group in groups.groups for item in group)
            written = table.rewrite(groups, now)
            # Files compress a little differently each time.
            real = int((taken + written) * BYTES_PER_ROW * draw.uniform(0.93, 1.07))
            day.rewritten += written
            day.predicted += step.cost.num_bytes
            day.real += real
            history.append(Measured("compact", step.quantity, real / 80e6 + 2, step.cost.num_bytes, real))
        elif step.action == "merge_columns":
            merged = table.merge_columns(_column_merges(table), now)
            real = int(2 * merged * draw.uniform(0.93, 1.07))
            day.rewritten += merged // BYTES_PER_ROW
            day.predicted += step.cost.num_bytes
            day.real += real
            history.append(Measured("merge_columns", step.quantity, real / 80e6 + 2, step.cost.num_bytes, real))
        elif step.action == "optimize_indices":
            table.unindexed = 0
        elif step.action == "cleanup":
            old = [at for at in table.versions[: -LEVELS.keep_versions] if at < now - LEVELS.keep_seconds]
            table.versions = table.versions[len(old) :]


def _compact_everything(tables: list[SimulatedTable], now: int, day: Day) -> None:
    """The example DAG of before: with more than twenty small fragments, everything below the target size is rewritten."""
    for table in tables:
        small = sum(item.physical_rows < 1024 * 1024 for item in table.fragments)
        if small > 20:
            day.rewritten += table.rewrite(plan_compaction(table.fragments, CompactionOptions(), read_version=1), now)


def _is_within_levels(table: SimulatedTable) -> bool:
    physical = sum(item.physical_rows for item in table.fragments)
    deleted = sum(item.num_deleted_rows for item in table.fragments)
    allowed = max(LEVELS.min_fragments + 60 // table.every, LEVELS.max_fragments_per_gb * physical * BYTES_PER_ROW / 1e9)
    files = LEVELS.max_files_per_fragment + 1
    return len(table.fragments) <= allowed and deleted <= LEVELS.max_deleted_share * physical and _most_files(table) <= files


def main() -> None:
    """Print both days side by side."""
    print("                                  policy   compact everything hourly")
    ours, theirs = simulate_day(by_policy=True), simulate_day(by_policy=False)
    print(f"rows rewritten for each written  {ours.rewrite_factor:7.2f}   {theirs.rewrite_factor:7.2f}")
    print(f"service levels kept              {ours.levels_kept:7.2%}   {theirs.levels_kept:7.2%}")
    print(f"most fragments of a table        {ours.most_fragments:7d}   {theirs.most_fragments:7d}")
    print(f"most files of a fragment         {ours.most_files:7d}   {theirs.most_files:7d}")
    print(f"predicted bytes off by           {ours.prediction_error:7.2%}")


if __name__ == "__main__":
    main()
