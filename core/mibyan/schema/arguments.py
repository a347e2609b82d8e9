"""Coercion and validation in one step, quick for what is right at once (dispatch.A2, A3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mibyan.once import once
from mibyan.schema.jsontext import to_json
from mibyan.schema.library import MAX_INTEGER
from mibyan.schema.plaincheck import plain_check
from mibyan.schema.validate import Validator, Violation, compile_validator

if TYPE_CHECKING:
    from collections.abc import Callable

    from mibyan.schema.coerce import Coercer
    from mibyan.schema.repairs import Repair

#: Containers inside one another that the quick look goes into.
_MAX_DEPTH = 50


class ArgumentCheck:
    """Tells what a tool gets for what the model sent, and what is wrong with it; never raises.

    Args:
        schema: The JSON Schema of the arguments; it is compiled when something needs it, or when it is used again.
    """

    def __init__(self, schema: Any) -> None:
        self._schema = schema
        #: Looks at the first arguments, if the schema is plain: a process may never have others.
        self._first = plain_check(schema)

    @once
    def validator(self) -> Validator:
        """The compiled schema."""
        return compile_validator(self._schema)

    @once
    def _is_valid(self) -> Callable[[Any], bool]:
        return self.validator.is_valid

    @once
    def _any_float(self) -> bool:
        """Whether a whole float can stay one: it is valid as an integer and yet to be repaired."""
        return '"integer"' not in to_json(self.validator.schema)

    @property
    def problem(self) -> str | None:
        """Why nothing is validated; `None` if everything is."""
        return self.validator.problem

    @once
    def coercer(self) -> Coercer:
        """What repairs arguments."""
        from mibyan.schema.coerce import prepare

        return prepare(self.validator.schema)

    def check(self, args: Any) -> tuple[Any, list[Repair], list[Violation]]:
        """The arguments as the tool gets them, what was repaired, and what is wrong with them then.

        Args:
            args: JSON types; it isn't changed, and given back itself if nothing had to be repaired.
        """
        if self._is_right(args):
            return args, [], []
        found, repairs = self.coercer.apply(args)
        return found, repairs, self.validator.violations(found)

    def _is_right(self, args: Any) -> bool:
        """Whether the arguments are clearly valid and nothing in them can need a repair."""
        first, self._first = self._first, None
        try:
            if first is not None and first(args):
                return True
            if self.problem is not None:
                return False
            return _is_usual(args, self._any_float, _MAX_DEPTH) and self._is_valid(args)
        except Exception:  # a lone surrogate, say: then they are looked at closely
            return False


def _is_usual(value: Any, any_float: bool, depth: int) -> bool:  # noqa: FBT001 - called for every container
    """Whether a container has only JSON values that the library judges as we do."""
    for item in value.values() if type(value) is dict else value:
        kind = type(item)
        if kind is str or kind is bool or item is None:
            continue
        if kind is int:
            if not -MAX_INTEGER < item < MAX_INTEGER:
                return False
        elif kind is float:
            if not (any_float or item % 1.0):
                return False
        elif depth <= 0 or kind not in _CONTAINERS or not _is_usual(item, any_float, depth - 1):
            return False
    return True


_CONTAINERS = frozenset((dict, list))
