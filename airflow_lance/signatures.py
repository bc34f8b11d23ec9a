"""The arguments that an operator, sensor or group takes from its bases, for editors and type checkers.

::

    class LanceAppendOperator(LanceWriteOperator):
        def __init__(self, *, create: bool = True, **kwargs: Unpack[WriteArguments]) -> None: ...

    inspect.signature(LanceAppendOperator)      all of them, with types and defaults, in place of `**kwargs`

A test compares these with the arguments of the classes and of the installed Airflow. No module needs this one when a DAG is
parsed.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Mapping, MutableMapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

from typing_extensions import Required, TypedDict

if TYPE_CHECKING:
    from airflow_lance.execution.arguments import Commit, Execution, OnClear
    from airflow_lance.execution.errors import OnMissing
    from airflow_lance.execution.external import Command
    from lance_core.jobs.specs.spec import SourceSpec
    from lance_core.maintenance.policy import Policy


class _AnyTask(TypedDict, total=False):
    owner: str
    email: str | Sequence[str] | None
    email_on_retry: bool
    email_on_failure: bool
    retries: int | None
    retry_delay: timedelta | float
    retry_exponential_backoff: float
    retry_policy: Any
    max_retry_delay: timedelta | float | None
    start_date: datetime | None
    end_date: datetime | None
    depends_on_past: bool
    ignore_first_depends_on_past: bool
    wait_for_past_depends_before_skipping: bool
    wait_for_downstream: bool
    dag: Any
    params: MutableMapping[str, Any] | None
    default_args: dict[str, Any] | None
    priority_weight: int
    weight_rule: Any
    queue: str
    pool: str | None
    pool_slots: int
    sla: timedelta | None
    execution_timeout: timedelta | None
    on_execute_callback: Any
    on_failure_callback: Any
    on_success_callback: Any
    on_retry_callback: Any
    on_skipped_callback: Any
    pre_execute: Any
    post_execute: Any
    resources: dict[str, Any] | None
    run_as_user: str | None
    map_index_template: str | None
    max_active_tis_per_dag: int | None
    max_active_tis_per_dagrun: int | None
    executor: str | None
    executor_config: dict[str, Any] | None
    do_xcom_push: bool
    multiple_outputs: bool
    inlets: Any
    outlets: Any
    task_group: Any
    doc: str | None
    doc_md: str | None
    doc_json: str | None
    doc_yaml: str | None
    doc_rst: str | None
    task_display_name: str | None
    logger_name: str | None
    allow_nested_operators: bool
    render_template_as_native_obj: bool | None


class _Task(_AnyTask, total=False):
    task_id: Required[str]


class TaskArguments(_Task, total=False):
    """What Airflow's `BaseOperator` takes."""

    trigger_rule: str


class _Uri(TypedDict, total=False):
    uri: Required[str | os.PathLike[str]]


class _Store(TypedDict, total=False):
    lance_conn_id: str
    storage_options: Mapping[str, Any] | None


class _Staging(TypedDict, total=False):
    commit: Commit | None
    gates: Sequence[Mapping[str, Any]]
    partitions: Sequence[str] | str | None
    on_missing: OnMissing
    key: str
    idempotency_key: str | None
    on_clear: OnClear | None
    execution: Execution | Command | None
    spark_conn_id: str | None
    conf: Mapping[str, str] | None
    spark_submit: Mapping[str, Any] | None
    packaging: str
    deferrable: bool | None


class CommitArguments(_Task, _Store, total=False):
    """Those of a task that publishes what others staged."""


class TableArguments(TaskArguments, _Store, _Uri, total=False):
    """Those of `LanceTableOperator`."""


class ImmediateArguments(TableArguments, total=False):
    """Those of `LanceImmediateOperator`."""

    on_clear: Literal["again", "skip"]


class StageArguments(TableArguments, _Staging, total=False):
    """Those of `LanceStageOperator`."""


class SqlArguments(TaskArguments, _Store, _Staging, total=False):
    """Those of `LanceStageOperator` for a task whose table is in its statement."""


class _Writing(TypedDict, total=False):
    max_rows_per_file: int | str | None
    max_bytes_per_file: int | str | None
    num_partitions: int | str | None
    partitioning: Literal["coalesce", "repartition"]
    schema_drift: str
    data_storage_version: str | None
    enable_stable_row_ids: bool
    properties: Mapping[str, str] | None
    progress_seconds: float


class WriteArguments(StageArguments, _Writing, total=False):
    """Those of `LanceWriteOperator`."""

    source: Required[Mapping[str, Any] | SourceSpec | str | os.PathLike[str] | Sequence[str | os.PathLike[str]]]


class DecoratedArguments(_AnyTask, _Store, _Staging, _Writing, total=False):
    """Those of `@task.lance` in all its modes; the operator of a mode has the meaning of each."""

    task_id: str
    trigger_rule: str
    inputs: Mapping[str, Any] | None
    create: bool
    allow_empty: bool
    predicate: str
    predicate_params: Mapping[str, Any] | None
    if_moved: Literal["fail", "overwrite"]
    on: str | Sequence[str]
    when_matched: Literal["update", "delete", "keep", "fail"]
    when_matched_condition: str | None
    when_not_matched: Literal["insert", "keep"]
    when_not_matched_by_source: Literal["keep", "delete"]
    when_not_matched_by_source_condition: str | None
    when_duplicate: Literal["fail", "last"]
    source_on: str | None
    if_exists: Literal["fail", "skip", "fill"]
    rows_per_task: int | str | None
    batch_size: int | str | None


class ColumnArguments(_AnyTask, _Store, total=False):
    """Those of `@task.lance_column` besides the declaration: the operator that refreshes has the meaning of each."""

    task_id: str
    trigger_rule: str
    gates: Sequence[Mapping[str, Any]]
    key: str
    idempotency_key: str | None
    on_clear: OnClear | None
    commit_every: int | str | None
    deep: bool
    retry_failed: bool
    max_rows: int | str | None
    max_seconds: float | str | None
    max_spent: Mapping[str, float] | None
    concurrency: int | None
    calls_per_second: float | None
    canary: int | str | None
    canary_fragments: int | None


class PolicyArguments(TaskArguments, total=False):
    """Those of the tasks of a maintenance run."""

    policy: Required[Policy | str | os.PathLike[str]]
    lance_conn_id: str


class AirflowSensorArguments(TaskArguments, total=False):
    """What Airflow's `BaseSensorOperator` takes."""

    poke_interval: timedelta | float
    timeout: timedelta | float | None
    soft_fail: bool
    mode: str
    exponential_backoff: bool
    max_wait: timedelta | float | None
    silent_fail: bool
    never_fail: bool


class SensorArguments(AirflowSensorArguments, _Store, _Uri, total=False):
    """Those of `LanceSensor`."""

    deferrable: bool | None


class GroupArguments(TypedDict, total=False):
    """What Airflow's `TaskGroup` takes besides its id."""

    group_display_name: str
    prefix_group_id: bool
    parent_group: Any
    dag: Any
    default_args: Any
    tooltip: str
    doc_md: str | None
    ui_color: str
    ui_fgcolor: str
    add_suffix_on_collision: bool


def full_signature(cls: type) -> inspect.Signature:
    """The signature of a class: its own arguments and those of its bases that `**kwargs` takes; the ones without a default
    first."""
    found: dict[str, inspect.Parameter] = {}
    for base in cls.__mro__:
        own = vars(base).get("__init__")
        if own is None or base is object:
            continue
        for item in list(inspect.signature(own).parameters.values())[1:]:
            if item.kind in (item.POSITIONAL_OR_KEYWORD, item.KEYWORD_ONLY):
                found.setdefault(item.name, item.replace(kind=item.KEYWORD_ONLY))
    taken = passed_on(cls)
    if taken is not None:
        own_names = inspect.signature(cls.__init__).parameters  # type: ignore[misc]
        found = {name: item for name, item in found.items() if name in own_names or name in taken}
    required = [item for item in found.values() if item.default is item.empty]
    return inspect.Signature([*required, *(item for item in found.values() if item.default is not item.empty)])


def passed_on(cls: type) -> frozenset[str] | None:
    """The arguments that the `**kwargs` of a class stand for; None where it does not say."""
    for item in inspect.signature(cls.__init__).parameters.values():  # type: ignore[misc]
        named = re.fullmatch(r"Unpack\[(\w+)\]", str(item.annotation)) if item.kind is item.VAR_KEYWORD else None
        if named is not None:
            arguments = globals()[named[1]]
            return frozenset(arguments.__required_keys__ | arguments.__optional_keys__)
    return None
