"""Operators of the Lance provider.

::

    from airflow_lance.operators import LanceAppendOperator, LanceCommitOperator

A class is imported when its name is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.lazy import lazy_face

if TYPE_CHECKING:
    from airflow_lance.operators.add_columns import LanceAddColumnsOperator as LanceAddColumnsOperator
    from airflow_lance.operators.append import LanceAppendOperator as LanceAppendOperator
    from airflow_lance.operators.branch import LanceBranchOperator as LanceBranchOperator
    from airflow_lance.operators.build_index import LanceBuildIndexOperator as LanceBuildIndexOperator
    from airflow_lance.operators.cleanup import LanceCleanupOperator as LanceCleanupOperator
    from airflow_lance.operators.commit import LanceCommitOperator as LanceCommitOperator
    from airflow_lance.operators.compact import LanceCompactOperator as LanceCompactOperator
    from airflow_lance.operators.delete import LanceDeleteOperator as LanceDeleteOperator
    from airflow_lance.operators.erase import LanceErasureOperator as LanceErasureOperator
    from airflow_lance.operators.garbage import LanceGarbageOperator as LanceGarbageOperator
    from airflow_lance.operators.immediate import LanceImmediateOperator as LanceImmediateOperator
    from airflow_lance.operators.merge import LanceMergeOperator as LanceMergeOperator
    from airflow_lance.operators.merge_column_files import LanceMergeColumnFilesOperator as LanceMergeColumnFilesOperator
    from airflow_lance.operators.missing_partitions import LanceMissingPartitionsOperator as LanceMissingPartitionsOperator
    from airflow_lance.operators.optimize_indices import LanceOptimizeIndicesOperator as LanceOptimizeIndicesOperator
    from airflow_lance.operators.overwrite import LanceOverwriteOperator as LanceOverwriteOperator
    from airflow_lance.operators.publish_branch import LancePublishBranchOperator as LancePublishBranchOperator
    from airflow_lance.operators.replace_where import LanceReplaceWhereOperator as LanceReplaceWhereOperator
    from airflow_lance.operators.restore import LanceRestoreOperator as LanceRestoreOperator
    from airflow_lance.operators.sql import LanceSqlOperator as LanceSqlOperator
    from airflow_lance.operators.stage import LanceStageOperator as LanceStageOperator
    from airflow_lance.operators.table import LanceTableOperator as LanceTableOperator
    from airflow_lance.operators.tag import LanceTagOperator as LanceTagOperator
    from airflow_lance.operators.transaction import LanceTransaction as LanceTransaction
    from airflow_lance.operators.update import LanceUpdateOperator as LanceUpdateOperator
    from airflow_lance.operators.validate import LanceValidateOperator as LanceValidateOperator
    from airflow_lance.operators.write import LanceWriteOperator as LanceWriteOperator
    from airflow_lance.operators.write_audit_publish import LanceWriteAuditPublish as LanceWriteAuditPublish
else:
    __getattr__, __dir__ = lazy_face(
        __name__,
        {
            "LanceAddColumnsOperator": "airflow_lance.operators.add_columns",
            "LanceAppendOperator": "airflow_lance.operators.append",
            "LanceBranchOperator": "airflow_lance.operators.branch",
            "LanceBuildIndexOperator": "airflow_lance.operators.build_index",
            "LanceCleanupOperator": "airflow_lance.operators.cleanup",
            "LanceCommitOperator": "airflow_lance.operators.commit",
            "LanceCompactOperator": "airflow_lance.operators.compact",
            "LanceDeleteOperator": "airflow_lance.operators.delete",
            "LanceErasureOperator": "airflow_lance.operators.erase",
            "LanceGarbageOperator": "airflow_lance.operators.garbage",
            "LanceMergeOperator": "airflow_lance.operators.merge",
            "LanceMissingPartitionsOperator": "airflow_lance.operators.missing_partitions",
            "LanceMergeColumnFilesOperator": "airflow_lance.operators.merge_column_files",
            "LanceOptimizeIndicesOperator": "airflow_lance.operators.optimize_indices",
            "LanceOverwriteOperator": "airflow_lance.operators.overwrite",
            "LancePublishBranchOperator": "airflow_lance.operators.publish_branch",
            "LanceReplaceWhereOperator": "airflow_lance.operators.replace_where",
            "LanceRestoreOperator": "airflow_lance.operators.restore",
            "LanceSqlOperator": "airflow_lance.operators.sql",
            "LanceStageOperator": "airflow_lance.operators.stage",
            "LanceTableOperator": "airflow_lance.operators.table",
            "LanceTagOperator": "airflow_lance.operators.tag",
            "LanceTransaction": "airflow_lance.operators.transaction",
            "LanceUpdateOperator": "airflow_lance.operators.update",
            "LanceValidateOperator": "airflow_lance.operators.validate",
            "LanceImmediateOperator": "airflow_lance.operators.immediate",
            "LanceWriteAuditPublish": "airflow_lance.operators.write_audit_publish",
            "LanceWriteOperator": "airflow_lance.operators.write",
        },
    )

__all__ = [
    "LanceAddColumnsOperator",
    "LanceAppendOperator",
    "LanceBranchOperator",
    "LanceBuildIndexOperator",
    "LanceCleanupOperator",
    "LanceCommitOperator",
    "LanceCompactOperator",
    "LanceDeleteOperator",
    "LanceErasureOperator",
    "LanceGarbageOperator",
    "LanceImmediateOperator",
    "LanceMergeColumnFilesOperator",
    "LanceMergeOperator",
    "LanceMissingPartitionsOperator",
    "LanceOptimizeIndicesOperator",
    "LanceOverwriteOperator",
    "LancePublishBranchOperator",
    "LanceReplaceWhereOperator",
    "LanceRestoreOperator",
    "LanceSqlOperator",
    "LanceStageOperator",
    "LanceTableOperator",
    "LanceTagOperator",
    "LanceTransaction",
    "LanceUpdateOperator",
    "LanceValidateOperator",
    "LanceWriteAuditPublish",
    "LanceWriteOperator",
]
