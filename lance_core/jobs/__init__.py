"""Jobs: one spec model shared by Airflow, Spark and the command line; plan -> run -> stage | abort, then commit.

::

    from lance_core.jobs import AppendSpec, SourceSpec, run_job
    run_job(AppendSpec(uri="/t.lance", identity="...", source=SourceSpec(format="csv", paths=("a.csv",))))

Importing a spec imports the standard library only, so that a DAG file may.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.lazy import lazy_face

if TYPE_CHECKING:
    from lance_core.jobs.kinds import spec_from_json as spec_from_json
    from lance_core.jobs.kinds import spec_from_plain as spec_from_plain
    from lance_core.jobs.run import run_job as run_job
    from lance_core.jobs.run import run_json as run_json
    from lance_core.jobs.runtime.local_runner import LocalRunner as LocalRunner
    from lance_core.jobs.runtime.protocols import JobResult as JobResult
    from lance_core.jobs.runtime.protocols import Runner as Runner
    from lance_core.jobs.specs.branches import PublishBranchSpec as PublishBranchSpec
    from lance_core.jobs.specs.edits import AddColumnsSpec as AddColumnsSpec
    from lance_core.jobs.specs.edits import CompactSpec as CompactSpec
    from lance_core.jobs.specs.edits import DeleteSpec as DeleteSpec
    from lance_core.jobs.specs.edits import MergeColumnFilesSpec as MergeColumnFilesSpec
    from lance_core.jobs.specs.edits import ReplaceWhereSpec as ReplaceWhereSpec
    from lance_core.jobs.specs.edits import UpdateSpec as UpdateSpec
    from lance_core.jobs.specs.gates import GateSpec as GateSpec
    from lance_core.jobs.specs.identity import make_identity as make_identity
    from lance_core.jobs.specs.indices import BuildIndexSpec as BuildIndexSpec
    from lance_core.jobs.specs.indices import OptimizeIndicesSpec as OptimizeIndicesSpec
    from lance_core.jobs.specs.maintenance import BranchSpec as BranchSpec
    from lance_core.jobs.specs.maintenance import CleanupSpec as CleanupSpec
    from lance_core.jobs.specs.maintenance import GarbageSpec as GarbageSpec
    from lance_core.jobs.specs.maintenance import RestoreSpec as RestoreSpec
    from lance_core.jobs.specs.maintenance import TagSpec as TagSpec
    from lance_core.jobs.specs.maintenance import ValidateSpec as ValidateSpec
    from lance_core.jobs.specs.merge import MergeSpec as MergeSpec
    from lance_core.jobs.specs.secret import Secret as Secret
    from lance_core.jobs.specs.spec import AppendSpec as AppendSpec
    from lance_core.jobs.specs.spec import CommitSpec as CommitSpec
    from lance_core.jobs.specs.spec import JobSpec as JobSpec
    from lance_core.jobs.specs.spec import OverwriteSpec as OverwriteSpec
    from lance_core.jobs.specs.spec import SourceSpec as SourceSpec
    from lance_core.jobs.specs.spec import WriteSpec as WriteSpec
    from lance_core.jobs.specs.spec import read_spec as read_spec
else:
    __getattr__, __dir__ = lazy_face(
        __name__,
        {
            "AddColumnsSpec": "lance_core.jobs.specs.edits",
            "AppendSpec": "lance_core.jobs.specs.spec",
            "BranchSpec": "lance_core.jobs.specs.maintenance",
            "BuildIndexSpec": "lance_core.jobs.specs.indices",
            "CleanupSpec": "lance_core.jobs.specs.maintenance",
            "CommitSpec": "lance_core.jobs.specs.spec",
            "CompactSpec": "lance_core.jobs.specs.edits",
            "DeleteSpec": "lance_core.jobs.specs.edits",
            "GarbageSpec": "lance_core.jobs.specs.maintenance",
            "GateSpec": "lance_core.jobs.specs.gates",
            "JobResult": "lance_core.jobs.runtime.protocols",
            "JobSpec": "lance_core.jobs.specs.spec",
            "LocalRunner": "lance_core.jobs.runtime.local_runner",
            "MergeColumnFilesSpec": "lance_core.jobs.specs.edits",
            "MergeSpec": "lance_core.jobs.specs.merge",
            "OptimizeIndicesSpec": "lance_core.jobs.specs.indices",
            "OverwriteSpec": "lance_core.jobs.specs.spec",
            "PublishBranchSpec": "lance_core.jobs.specs.branches",
            "ReplaceWhereSpec": "lance_core.jobs.specs.edits",
            "RestoreSpec": "lance_core.jobs.specs.maintenance",
            "Runner": "lance_core.jobs.runtime.protocols",
            "Secret": "lance_core.jobs.specs.secret",
            "SourceSpec": "lance_core.jobs.specs.spec",
            "TagSpec": "lance_core.jobs.specs.maintenance",
            "UpdateSpec": "lance_core.jobs.specs.edits",
            "ValidateSpec": "lance_core.jobs.specs.maintenance",
            "WriteSpec": "lance_core.jobs.specs.spec",
            "make_identity": "lance_core.jobs.specs.identity",
            "read_spec": "lance_core.jobs.specs.spec",
            "run_job": "lance_core.jobs.run",
            "run_json": "lance_core.jobs.run",
            "spec_from_json": "lance_core.jobs.kinds",
            "spec_from_plain": "lance_core.jobs.kinds",
        },
    )

__all__ = [
    "AddColumnsSpec",
    "AppendSpec",
    "BranchSpec",
    "BuildIndexSpec",
    "CleanupSpec",
    "CommitSpec",
    "CompactSpec",
    "DeleteSpec",
    "GarbageSpec",
    "GateSpec",
    "JobResult",
    "JobSpec",
    "LocalRunner",
    "MergeColumnFilesSpec",
    "MergeSpec",
    "OptimizeIndicesSpec",
    "OverwriteSpec",
    "PublishBranchSpec",
    "ReplaceWhereSpec",
    "RestoreSpec",
    "Runner",
    "Secret",
    "SourceSpec",
    "TagSpec",
    "UpdateSpec",
    "ValidateSpec",
    "WriteSpec",
    "make_identity",
    "read_spec",
    "run_job",
    "run_json",
    "spec_from_json",
    "spec_from_plain",
]
