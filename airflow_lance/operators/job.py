"""Shared by the operators that carry out one job: the spec's fields are the operator's arguments, by name."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_lance.execution.parse_checks import check_arguments
from airflow_lance.operators.table import LanceTableOperator

if TYPE_CHECKING:
    from lance_core.jobs.specs.spec import JobSpec


class LanceJobOperator(LanceTableOperator):
    """An operator on one table that carries out a job.

    Raises:
        InputError: arguments that make no job, among the DAG's import errors.
    """

    renamed: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """A field of the spec -> the attribute that has its value, where the two have different names."""

    @property
    @abstractmethod
    def spec(self) -> str:
        """The class of the job's spec, as `module:name`: an attribute of the class."""

    def make_spec(self, *, uri: str, identity: str) -> JobSpec:
        """The job's description, without storage options. InputError names the argument that is wrong."""
        from airflow_lance.execution.fields import spec_class
        from lance_core.jobs.specs.spec import read_spec

        spec: JobSpec = read_spec(spec_class(self.spec), {"uri": uri, "identity": identity, **self.spec_fields()})
        return spec

    def spec_fields(self) -> dict[str, Any]:
        """The spec's own fields as plain data: the attributes of their names."""
        from airflow_lance.execution.fields import fields_of

        return fields_of(self)

    def resolve_template_files(self) -> None:
        """Airflow calls this once the DAG is complete: the moment to check the arguments."""
        super().resolve_template_files()
        check_arguments(self)
