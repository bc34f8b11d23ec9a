"""Values of an object that are made when first requested, without a lock.

::

    class Partition:
        @cached_property
        def tokens(self) -> Tokens:         read from the store once, then an attribute of the object
            return self._read()

Before Python 3.12 `functools.cached_property` holds one lock for each class while it makes a value: a store that hangs under
one object stops every other object of that class, of other tables and stores too, and a process that forks then gives its
child a lock that nobody ever releases. Here two threads that ask at once both make the value, and one of them is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class cached_property(Generic[T]):
    """A property whose value is made once for each object, and kept in the object's `__dict__`."""

    def __init__(self, make: Callable[[Any], T]) -> None:
        self._make = make
        self._name = make.__name__
        self.__doc__ = make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        """Keep the value under the attribute's own name, where the next access finds it without coming here."""
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> cached_property[T]: ...

    @overload
    def __get__(self, instance: object, owner: type) -> T: ...

    def __get__(self, instance: object | None, owner: type) -> cached_property[T] | T:
        """The value; of a class, this property itself."""
        if instance is None:
            return self
        kept: dict[str, Any] = instance.__dict__
        value: T = kept.setdefault(self._name, self._make(instance))
        return value
