"""Remove what dead attempts and commits left behind: takes effect at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_lance.operators.verb import LanceVerbOperator

if TYPE_CHECKING:
    from lance_core.jobs.specs.spec import JobSpec


class LanceGarbageOperator(LanceVerbOperator):
    """Remove files and records of attempts whose lease is over, by name. Arguments of `LanceVerbOperator`, and

    :param dry_run: remove nothing, only tell.
    """

    def __init__(self, *, dry_run: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.only_report = dry_run  # BaseOperator has a method of that name

    def make_spec(self, *, uri: str, identity: str) -> JobSpec:
        """Return a GarbageSpec; InputError names the argument that is wrong."""
        from lance_core.jobs.specs.maintenance import GarbageSpec
        from lance_core.jobs.specs.spec import read_spec

        return read_spec(GarbageSpec, {"uri": uri, "identity": identity, "dry_run": self.only_report})
