"""Operators of the Lance provider.

::

    from airflow_lance.operators import LanceAppendOperator, LanceCommitOperator

A class is imported when its name is first used. `OPERATORS` is the list of them all: this face, that of `airflow_lance`, the
description for Airflow and the reference are made of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lance_core.lazy import lazy_face

OPERATORS: Mapping[str, str] = {
    "LanceAddColumnsOperator": "airflow_lance.operators.add_columns",
    "LanceAlterColumnsOperator": "airflow_lance.operators.alter_columns",
    "LanceAppendOperator": "airflow_lance.operators.append",
    "LanceBranchOperator": "airflow_lance.operators.branch",
    "LanceBuildIndexOperator": "airflow_lance.operators.build_index",
    "LanceCheckOperator": "airflow_lance.operators.check",
    "LanceCleanupOperator": "airflow_lance.operators.cleanup",
    "LanceCloneOperator": "airflow_lance.operators.clone",
    "LanceCommitOperator": "airflow_lance.operators.commit",
    "LanceCompactOperator": "airflow_lance.operators.compact",
    "LanceCreateTableOperator": "airflow_lance.operators.create_table",
    "LanceDeclareColumnOperator": "airflow_lance.operators.declare_column",
    "LanceDeleteOperator": "airflow_lance.operators.delete",
    "LanceDescribeOperator": "airflow_lance.operators.describe",
    "LanceDropColumnsOperator": "airflow_lance.operators.drop_columns",
    "LanceDropIndexOperator": "airflow_lance.operators.drop_index",
    "LanceDropTableOperator": "airflow_lance.operators.drop_table",
    "LanceErasureOperator": "airflow_lance.operators.erase",
    "LanceGarbageOperator": "airflow_lance.operators.garbage",
    "LanceImmediateOperator": "airflow_lance.operators.immediate",
    "LanceJobOperator": "airflow_lance.operators.job",
    "LanceMergeColumnFilesOperator": "airflow_lance.operators.merge_column_files",
    "LanceMergeOperator": "airflow_lance.operators.merge",
    "LanceMissingPartitionsOperator": "airflow_lance.operators.missing_partitions",
    "LanceOptimizeIndicesOperator": "airflow_lance.operators.optimize_indices",
    "LanceOverwriteOperator": "airflow_lance.operators.overwrite",
    "LancePublishBranchOperator": "airflow_lance.operators.publish_branch",
    "LanceQueryOperator": "airflow_lance.operators.query",
    "LanceRefreshColumnsOperator": "airflow_lance.operators.refresh_columns",
    "LanceRenameColumnOperator": "airflow_lance.operators.rename_column",
    "LanceReplaceWhereOperator": "airflow_lance.operators.replace_where",
    "LanceRestoreOperator": "airflow_lance.operators.restore",
    "LanceSqlOperator": "airflow_lance.operators.sql",
    "LanceStageOperator": "airflow_lance.operators.stage",
    "LanceSwitchColumn": "airflow_lance.operators.switch_column",
    "LanceSwitchColumnOperator": "airflow_lance.operators.switch_column",
    "LanceTableConfigOperator": "airflow_lance.operators.table_config",
    "LanceTableOperator": "airflow_lance.operators.table",
    "LanceTagOperator": "airflow_lance.operators.tag",
    "LanceTransaction": "airflow_lance.operators.transaction",
    "LanceUndeclareColumnsOperator": "airflow_lance.operators.undeclare_columns",
    "LanceUpdateOperator": "airflow_lance.operators.update",
    "LanceValidateOperator": "airflow_lance.operators.validate",
    "LanceWriteAuditPublish": "airflow_lance.operators.write_audit_publish",
    "LanceWriteOperator": "airflow_lance.operators.write",
}
"""Class -> module, for everything that a DAG file may take from here."""

BASES = ("LanceImmediateOperator", "LanceJobOperator", "LanceStageOperator", "LanceTableOperator", "LanceWriteOperator")
"""Those that are no operators themselves."""

if TYPE_CHECKING:
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
    from airflow_lance.operators.declare_column import LanceDeclareColumnOperator as LanceDeclareColumnOperator
    from airflow_lance.operators.delete import LanceDeleteOperator as LanceDeleteOperator
    from airflow_lance.operators.describe import LanceDescribeOperator as LanceDescribeOperator
    from airflow_lance.operators.drop_columns import LanceDropColumnsOperator as LanceDropColumnsOperator
    from airflow_lance.operators.drop_index import LanceDropIndexOperator as LanceDropIndexOperator
    from airflow_lance.operators.drop_table import LanceDropTableOperator as LanceDropTableOperator
    from airflow_lance.operators.erase import LanceErasureOperator as LanceErasureOperator
    from airflow_lance.operators.garbage import LanceGarbageOperator as LanceGarbageOperator
    from airflow_lance.operators.immediate import LanceImmediateOperator as LanceImmediateOperator
    from airflow_lance.operators.job import LanceJobOperator as LanceJobOperator
    from airflow_lance.operators.merge import LanceMergeOperator as LanceMergeOperator
    from airflow_lance.operators.merge_column_files import LanceMergeColumnFilesOperator as LanceMergeColumnFilesOperator
    from airflow_lance.operators.missing_partitions import LanceMissingPartitionsOperator as LanceMissingPartitionsOperator
    from airflow_lance.operators.optimize_indices import LanceOptimizeIndicesOperator as LanceOptimizeIndicesOperator
    from airflow_lance.operators.overwrite import LanceOverwriteOperator as LanceOverwriteOperator
    from airflow_lance.operators.publish_branch import LancePublishBranchOperator as LancePublishBranchOperator
    from airflow_lance.operators.query import LanceQueryOperator as LanceQueryOperator
    from airflow_lance.operators.refresh_columns import LanceRefreshColumnsOperator as LanceRefreshColumnsOperator
    from airflow_lance.operators.rename_column import LanceRenameColumnOperator as LanceRenameColumnOperator
    from airflow_lance.operators.replace_where import LanceReplaceWhereOperator as LanceReplaceWhereOperator
    from airflow_lance.operators.restore import LanceRestoreOperator as LanceRestoreOperator
    from airflow_lance.operators.sql import LanceSqlOperator as LanceSqlOperator
    from airflow_lance.operators.stage import LanceStageOperator as LanceStageOperator
    from airflow_lance.operators.switch_column import LanceSwitchColumn as LanceSwitchColumn
    from airflow_lance.operators.switch_column import LanceSwitchColumnOperator as LanceSwitchColumnOperator
    from airflow_lance.operators.table import LanceTableOperator as LanceTableOperator
    from airflow_lance.operators.table_config import LanceTableConfigOperator as LanceTableConfigOperator
    from airflow_lance.operators.tag import LanceTagOperator as LanceTagOperator
    from airflow_lance.operators.transaction import LanceTransaction as LanceTransaction
    from airflow_lance.operators.undeclare_columns import LanceUndeclareColumnsOperator as LanceUndeclareColumnsOperator
    from airflow_lance.operators.update import LanceUpdateOperator as LanceUpdateOperator
    from airflow_lance.operators.validate import LanceValidateOperator as LanceValidateOperator
    from airflow_lance.operators.write import LanceWriteOperator as LanceWriteOperator
    from airflow_lance.operators.write_audit_publish import LanceWriteAuditPublish as LanceWriteAuditPublish
else:
    __getattr__, __dir__ = lazy_face(__name__, OPERATORS)
    __all__ = sorted(OPERATORS)
