"""The Lance provider of Apache Airflow: hooks, operators, sensors and triggers over `lance_core`.

::

    from airflow_lance import LanceAppendOperator, LanceCommitOperator

Nothing here knows a table's rules; nothing but Airflow and the standard library is imported at parse time, and a class only
when its name is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_core.lazy import lazy_face

if TYPE_CHECKING:
    from airflow_lance.assets import create_asset as create_asset
    from airflow_lance.hooks.lance import LanceHook as LanceHook
    from airflow_lance.operators.add_columns import LanceAddColumnsOperator as LanceAddColumnsOperator
    from airflow_lance.operators.alter_columns import LanceAlterColumnsOperator as LanceAlterColumnsOperator
    from airflow_lance.operators.append import LanceAppendOperator as LanceAppendOperator
    from airflow_lance.operators.branch import LanceBranchOperator as LanceBranchOperator
    from airflow_lance.operators.build_index import LanceBuildIndexOperator as LanceBuildIndexOperator
    from airflow_lance.operators.check import LanceCheckOperator as LanceCheckOperator
    from airflow_lance.operators.cleanup import LanceCleanupOperator as LanceCleanupOperator
    from airflow_lance.operators.clone import LanceCloneOperator as LanceCloneOperator
    from airflow_lance.operators.commit import LanceCommitOperator as LanceCommitOperator
    from airflow_lance.operators.compact import LanceCompactOperator as LanceCompactOperator
    from airflow_lance.operators.create_table import LanceCreateTableOperator as LanceCreateTableOperator
    from airflow_lance.operators.delete import LanceDeleteOperator as LanceDeleteOperator
    from airflow_lance.operators.describe import LanceDescribeOperator as LanceDescribeOperator
    from airflow_lance.operators.drop_columns import LanceDropColumnsOperator as LanceDropColumnsOperator
    from airflow_lance.operators.drop_index import LanceDropIndexOperator as LanceDropIndexOperator
    from airflow_lance.operators.drop_table import LanceDropTableOperator as LanceDropTableOperator
    from airflow_lance.operators.erase import LanceErasureOperator as LanceErasureOperator
    from airflow_lance.operators.garbage import LanceGarbageOperator as LanceGarbageOperator
    from airflow_lance.operators.immediate import LanceImmediateOperator as LanceImmediateOperator
    from airflow_lance.operators.merge import LanceMergeOperator as LanceMergeOperator
    from airflow_lance.operators.merge_column_files import LanceMergeColumnFilesOperator as LanceMergeColumnFilesOperator
    from airflow_lance.operators.missing_partitions import LanceMissingPartitionsOperator as LanceMissingPartitionsOperator
    from airflow_lance.operators.optimize_indices import LanceOptimizeIndicesOperator as LanceOptimizeIndicesOperator
    from airflow_lance.operators.overwrite import LanceOverwriteOperator as LanceOverwriteOperator
    from airflow_lance.operators.publish_branch import LancePublishBranchOperator as LancePublishBranchOperator
    from airflow_lance.operators.query import LanceQueryOperator as LanceQueryOperator
    from airflow_lance.operators.replace_where import LanceReplaceWhereOperator as LanceReplaceWhereOperator
    from airflow_lance.operators.restore import LanceRestoreOperator as LanceRestoreOperator
    from airflow_lance.operators.stage import LanceStageOperator as LanceStageOperator
    from airflow_lance.operators.table import LanceTableOperator as LanceTableOperator
    from airflow_lance.operators.table_config import LanceTableConfigOperator as LanceTableConfigOperator
    from airflow_lance.operators.tag import LanceTagOperator as LanceTagOperator
    from airflow_lance.operators.transaction import LanceTransaction as LanceTransaction
    from airflow_lance.operators.update import LanceUpdateOperator as LanceUpdateOperator
    from airflow_lance.operators.validate import LanceValidateOperator as LanceValidateOperator
    from airflow_lance.operators.write import LanceWriteOperator as LanceWriteOperator
    from airflow_lance.operators.write_audit_publish import LanceWriteAuditPublish as LanceWriteAuditPublish
    from airflow_lance.pools import pool_of as pool_of
    from airflow_lance.sensors.base import LanceSensor as LanceSensor
    from airflow_lance.sensors.health import LanceFragmentHealthSensor as LanceFragmentHealthSensor
    from airflow_lance.sensors.index import LanceIndexCoverageSensor as LanceIndexCoverageSensor
    from airflow_lance.sensors.partitions import LancePartitionsSensor as LancePartitionsSensor
    from airflow_lance.sensors.rows import LanceRowsSensor as LanceRowsSensor
    from airflow_lance.sensors.staged import LanceStagedSensor as LanceStagedSensor
    from airflow_lance.sensors.tag import LanceTagSensor as LanceTagSensor
    from airflow_lance.sensors.version import LanceVersionSensor as LanceVersionSensor
    from airflow_lance.triggers.condition import LanceConditionTrigger as LanceConditionTrigger
    from airflow_lance.triggers.staging import LanceStagingTrigger as LanceStagingTrigger
    from airflow_lance.triggers.version import LanceVersionTrigger as LanceVersionTrigger
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
            "LanceConditionTrigger": "airflow_lance.triggers.condition",
            "LanceDeleteOperator": "airflow_lance.operators.delete",
            "LanceDescribeOperator": "airflow_lance.operators.describe",
            "LanceFragmentHealthSensor": "airflow_lance.sensors.health",
            "LanceErasureOperator": "airflow_lance.operators.erase",
            "LanceGarbageOperator": "airflow_lance.operators.garbage",
            "LanceHook": "airflow_lance.hooks.lance",
            "LanceIndexCoverageSensor": "airflow_lance.sensors.index",
            "LanceMergeOperator": "airflow_lance.operators.merge",
            "LanceMissingPartitionsOperator": "airflow_lance.operators.missing_partitions",
            "LanceMergeColumnFilesOperator": "airflow_lance.operators.merge_column_files",
            "LanceOptimizeIndicesOperator": "airflow_lance.operators.optimize_indices",
            "LanceOverwriteOperator": "airflow_lance.operators.overwrite",
            "LancePublishBranchOperator": "airflow_lance.operators.publish_branch",
            "LanceReplaceWhereOperator": "airflow_lance.operators.replace_where",
            "LanceRestoreOperator": "airflow_lance.operators.restore",
            "LancePartitionsSensor": "airflow_lance.sensors.partitions",
            "LanceRowsSensor": "airflow_lance.sensors.rows",
            "LanceSensor": "airflow_lance.sensors.base",
            "LanceStageOperator": "airflow_lance.operators.stage",
            "LanceStagedSensor": "airflow_lance.sensors.staged",
            "LanceStagingTrigger": "airflow_lance.triggers.staging",
            "LanceTableOperator": "airflow_lance.operators.table",
            "LanceTagOperator": "airflow_lance.operators.tag",
            "LanceTagSensor": "airflow_lance.sensors.tag",
            "LanceTransaction": "airflow_lance.operators.transaction",
            "LanceUpdateOperator": "airflow_lance.operators.update",
            "LanceValidateOperator": "airflow_lance.operators.validate",
            "LanceDropColumnsOperator": "airflow_lance.operators.drop_columns",
            "LanceAlterColumnsOperator": "airflow_lance.operators.alter_columns",
            "LanceDropIndexOperator": "airflow_lance.operators.drop_index",
            "LanceTableConfigOperator": "airflow_lance.operators.table_config",
            "LanceCreateTableOperator": "airflow_lance.operators.create_table",
            "LanceDropTableOperator": "airflow_lance.operators.drop_table",
            "LanceCloneOperator": "airflow_lance.operators.clone",
            "LanceQueryOperator": "airflow_lance.operators.query",
            "LanceCheckOperator": "airflow_lance.operators.check",
            "LanceImmediateOperator": "airflow_lance.operators.immediate",
            "LanceVersionSensor": "airflow_lance.sensors.version",
            "LanceVersionTrigger": "airflow_lance.triggers.version",
            "LanceWriteAuditPublish": "airflow_lance.operators.write_audit_publish",
            "LanceWriteOperator": "airflow_lance.operators.write",
            "create_asset": "airflow_lance.assets",
            "pool_of": "airflow_lance.pools",
        },
    )

__version__ = "0.1.0"

__all__ = [
    "LanceAddColumnsOperator",
    "LanceAppendOperator",
    "LanceBranchOperator",
    "LanceBuildIndexOperator",
    "LanceCleanupOperator",
    "LanceCommitOperator",
    "LanceCompactOperator",
    "LanceConditionTrigger",
    "LanceDeleteOperator",
    "LanceDescribeOperator",
    "LanceErasureOperator",
    "LanceFragmentHealthSensor",
    "LanceGarbageOperator",
    "LanceHook",
    "LanceImmediateOperator",
    "LanceIndexCoverageSensor",
    "LanceMergeColumnFilesOperator",
    "LanceMergeOperator",
    "LanceMissingPartitionsOperator",
    "LanceOptimizeIndicesOperator",
    "LanceOverwriteOperator",
    "LancePartitionsSensor",
    "LancePublishBranchOperator",
    "LanceReplaceWhereOperator",
    "LanceRestoreOperator",
    "LanceRowsSensor",
    "LanceSensor",
    "LanceStageOperator",
    "LanceStagedSensor",
    "LanceStagingTrigger",
    "LanceTableOperator",
    "LanceTagOperator",
    "LanceTagSensor",
    "LanceTransaction",
    "LanceUpdateOperator",
    "LanceValidateOperator",
    "LanceVersionSensor",
    "LanceVersionTrigger",
    "LanceWriteAuditPublish",
    "LanceWriteOperator",
    "__version__",
    "create_asset",
    "pool_of",
]
