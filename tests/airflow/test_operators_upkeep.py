"""Cleanup, garbage, tag, restore and validate operators on real tables, in this process."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pytest

from airflow_lance.compat import AirflowFailException
from airflow_lance.operators.cleanup import LanceCleanupOperator
from airflow_lance.operators.delete import LanceDeleteOperator
from airflow_lance.operators.garbage import LanceGarbageOperator
from airflow_lance.operators.restore import LanceRestoreOperator
from airflow_lance.operators.tag import LanceTagOperator
from airflow_lance.operators.validate import LanceValidateOperator
from lance_core.errors import InputError
from lance_core.publish.model import StagedTransaction
from tests.airflow.operator_support import execute, ids, make_table


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return make_table(tmp_path / "t.lance", 0, 10, 20)


def _versions(uri: str) -> list[int]:
    return [int(item["version"]) for item in lance.dataset(uri).versions()]


def test_cleanup_spares_tags_and_staged_work(uri: str) -> None:
    execute(LanceTagOperator(task_id="tag", uri=uri, tag="first", version="1"))
    staged = execute(LanceDeleteOperator(task_id="d", uri=uri, predicate="id < 3", execution="local"))
    plan = execute(LanceCleanupOperator(task_id="c", uri=uri, retain_versions=1, explain=True))
    assert (plan["versions"], plan["kept"]) == ([2], {"1": "tagged first"})
    done = execute(LanceCleanupOperator(task_id="c", uri=uri, retain_versions="1", delete_unverified=True))
    assert (done["old_versions"], _versions(uri)) == (1, [1, 3])
    assert execute(LanceCleanupOperator(task_id="c", uri=uri, older_than_days=3.5))["old_versions"] == 0
    waits = Path(uri, StagedTransaction.from_dict(staged).transaction_path)
    assert waits.exists()
    assert execute(LanceGarbageOperator(task_id="g", uri=uri))["num_files"] == 0
    assert execute(LanceGarbageOperator(task_id="g", uri=uri, dry_run=True))["dry_run"] is True
    kept = execute(LanceGarbageOperator(task_id="g", uri=uri, abandon_after=timedelta(days=1)))
    assert (kept["abandoned"], waits.exists()) == ([], True)
    gone = execute(LanceGarbageOperator(task_id="g", uri=uri, abandon_after=timedelta(microseconds=1)))
    assert (gone["abandoned"], waits.exists()) == ([staged["identity"]], False)
    for wrong in (7, timedelta(0), timedelta(days=-1)):
        with pytest.raises(AirflowFailException, match="abandon_after"):
            execute(LanceGarbageOperator(task_id="g", uri=uri, abandon_after=wrong))


def test_tags(uri: str) -> None:
    assert execute(LanceTagOperator(task_id="t", uri=uri, tag="golden"))["version"] == 3
    with pytest.raises(AirflowFailException, match="refers to version 3"):
        execute(LanceTagOperator(task_id="t", uri=uri, tag="golden", action="create", version=2))
    assert lance.dataset(uri, version="golden").version == 3
    assert execute(LanceTagOperator(task_id="t", uri=uri, tag="golden", action="delete"))["before"] == 3


def test_restore_once_and_strict(uri: str) -> None:
    operator = LanceRestoreOperator(task_id="r", uri=uri, version="1", expected_version="3")
    assert execute(operator)["version"] == 4
    lance.dataset(uri).delete("id = 0")
    assert set(execute(operator)["identities"].values()) == {"already_committed"}
    assert ids(uri) == [*range(1, 10)]
    with pytest.raises(AirflowFailException, match="at version 5, not at the expected version 3"):
        execute(operator, run_id="another")
    with pytest.raises(InputError, match="exactly one of version and tag"):
        LanceRestoreOperator(task_id="r", uri=uri).make_spec(uri=uri, identity="")


def test_validate(uri: str) -> None:
    assert execute(LanceValidateOperator(task_id="v", uri=uri))["num_rows"] == 30
    told = execute(LanceValidateOperator(task_id="v", uri=uri, indices=True, seal_indices=True))
    assert (told["indices_checked"], told["indices_sealed"]) == (0, [])
    next(Path(uri, "data").iterdir()).unlink()
    with pytest.raises(AirflowFailException):
        execute(LanceValidateOperator(task_id="v", uri=uri))
    assert execute(LanceValidateOperator(task_id="v", uri=uri, deep=False, version="1"))["num_rows"] == 10


def test_outlets_hear_the_version(uri: str) -> None:
    from airflow_lance.assets import create_asset
    from tests.airflow.operator_support import FakeTi

    asset = create_asset(uri=uri)

    class Event:
        extra: dict[str, Any] = {}  # noqa: RUF012

    operator = LanceRestoreOperator(task_id="r", uri=uri, version=1, outlets=[asset])
    operator.execute({"ti": FakeTi("r", "x"), "outlet_events": {asset: Event}})  # type: ignore[typeddict-item]
    assert Event.extra == {"uri": uri, "version": 4}
