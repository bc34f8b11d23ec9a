"""What `inspect.signature` and `help` show of an operator or a sensor: all its arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from inspect import Signature


class FullSignature:
    """`__signature__` of a class: the keyword arguments of its `__init__` and of its bases', which `**kwargs` stands for."""

    def __get__(self, instance: object, owner: type) -> Signature:
        from airflow_lance.signatures import full_signature  # not when a DAG is parsed

        return full_signature(owner)
