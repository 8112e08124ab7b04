"""Attributes that are computed when they are first read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast, overload

T = TypeVar("T")


class cached_property(Generic[T]):  # noqa: N801 - as functools has it
    """``functools.cached_property`` as it is from Python 3.12 on: without a lock.

    The lock of 3.11 is held while a value is computed, one lock for all instances. A process that
    forks while another of its threads computes one would wait for it forever in the child.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> cached_property[T]: ...

    @overload
    def __get__(self, instance: object, owner: type) -> T: ...

    def __get__(self, instance: object | None, owner: type) -> Any:
        if instance is None:
            return self
        # The instance's own dictionary comes first: from now on, this is not called again.
        value = vars(instance)[self._name] = self._compute(instance)
        return value


class Later(Generic[T]):
    """A field of a dataclass that may be given as a function, which is called when it is read."""

    def __init__(self, default: T) -> None:
        self._default = default

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object | None, owner: type) -> T:
        if instance is None:
            return self._default
        value = vars(instance)[self._name]
        if callable(value):
            value = vars(instance)[self._name] = value()
        return cast(T, value)

    def __set__(self, instance: object, value: Any) -> None:
        vars(instance)[self._name] = value
