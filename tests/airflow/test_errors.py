"""Which errors Airflow retries: the table of the design, error by error."""

from __future__ import annotations

import pytest
from airflow.sdk.exceptions import AirflowFailException

from airflow_lance.execution.errors import as_airflow_errors
from lance_core import errors


@pytest.mark.parametrize("kind", [errors.RetryableConflictError, errors.StoreError])
def test_what_may_heal_is_left_to_airflows_retry(kind: type[errors.LanceError]) -> None:
    with pytest.raises(kind), as_airflow_errors():
        raise kind("busy")


@pytest.mark.parametrize(
    "kind",
    [
        errors.IncompatibleConflictError,
        errors.InputError,
        errors.SchemaMismatchError,
        errors.FormatError,
        errors.CorruptFileError,
        errors.UnsupportedFeatureError,
        errors.NotFoundError,
        errors.GateFailedError,
        errors.PreconditionError,
    ],
)
def test_what_a_retry_cannot_mend_fails_at_once_with_the_cure(kind: type[errors.LanceError]) -> None:
    with (
        pytest.raises(AirflowFailException, match=rf"{kind.__name__}: it is wrong\. Mend it\.") as caught,
        as_airflow_errors(),
    ):
        raise kind("it is wrong", cure="Mend it.")
    assert isinstance(caught.value.__cause__, kind)


def test_an_unknown_outcome_names_the_command_that_settles_it() -> None:
    with pytest.raises(AirflowFailException, match="lance staged list s3://lake/t") as caught, as_airflow_errors():
        raise errors.CommitStateUnknownError("nobody can tell", uri="s3://lake/t")
    assert "lance staged abort s3://lake/t" in str(caught.value)
    assert "not retried" in str(caught.value)


def test_other_errors_pass() -> None:
    with pytest.raises(OSError, match="disk"), as_airflow_errors():
        raise OSError("disk full")
