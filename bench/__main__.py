"""`python -m bench`: run workloads, print the table, write bench/results."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click

from bench.measure import run_case
from bench.report import Result, markdown_table, print_result, write_results
from bench.workloads import WORKLOADS

RESULTS = Path(__file__).parent / "results"


@click.command(help=__doc__)
@click.option("--only", multiple=True, help="Workloads to run (all by default): " + ", ".join(WORKLOADS))
@click.option("--case", "pattern", default="", help="Only cases whose name contains this text.")
@click.option("--repeats", default=7, show_default=True, help="Timed repetitions of each contender.")
@click.option("--scale", default=1.0, show_default=True, help="Multiply row counts (0.1 for a quick look).")
@click.option("--folder", type=click.Path(path_type=Path), default=None, help="Where to keep the data (a temporary folder).")
def main(only: tuple[str, ...], pattern: str, repeats: int, scale: float, folder: Path | None) -> None:
    """Run the chosen workloads one after the other, each on data of its own."""
    results: list[Result] = []
    with tempfile.TemporaryDirectory(prefix="lance-bench-") as scratch:
        root = folder or Path(scratch)
        for name in only or WORKLOADS:
            place = root / name
            place.mkdir(parents=True, exist_ok=True)
            for case in WORKLOADS[name](place, scale):
                if pattern in case.name:
                    result = Result(name, case, tuple(run_case(case, repeats=repeats)))
                    print_result(result)
                    results.append(result)
    write_results(results, RESULTS)
    print("\n" + markdown_table(results))
    print(f"\nwritten: {RESULTS}")


if __name__ == "__main__":
    main()
