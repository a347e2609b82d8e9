"""Validation of a model's arguments: JSON Schema 2020-12 by a library, with answers for a model (dispatch.A3, A4)."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from mibyan.schema.drafts import modern
from mibyan.schema.library import compile_schema, encodable, is_sane
from mibyan.schema.violations import Violation, tell
from mibyan.text import describe_exception, one_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from jsonschema_rs import Draft202012Validator

__all__ = ["Validator", "Violation", "compile_validator"]

#: Violations that are told; nobody mends more in one go, and the result's text is bounded anyhow.
MAX_VIOLATIONS = 200


def compile_validator(schema: Any) -> Validator:
    """A schema compiled for validation.

    Args:
        schema: A JSON Schema; `$ref`s are resolved within it, never elsewhere.

    Returns:
        A validator; if the schema can't be compiled, one that finds nothing and says so in its `problem`.
    """
    schema = modern(schema)  # the library's findings have paths in this one
    try:
        return Validator(schema, compile_schema(schema))
    except Exception as error:  # the library's own, and whatever a strange schema provokes
        return Validator(schema, None, one_line(describe_exception(error)))


class Validator:
    """Tells whether values are valid, and what is wrong with them; never raises, whatever the value.

    Args:
        schema: The schema, in the words of 2020-12.
        compiled: The library's validator; `None`: every value is valid.
        problem: Why there is none.
    """

    __slots__ = ("_compiled", "is_valid", "problem", "schema")

    def __init__(self, schema: Any, compiled: Draft202012Validator | None, problem: str | None = None) -> None:
        #: What values are validated against, in the words of 2020-12.
        self.schema = schema
        self._compiled = compiled
        #: The library's own judgement: quick, and may raise.
        self.is_valid: Callable[[Any], bool] = compiled.is_valid if compiled is not None else lambda _value: True
        #: Why nothing is validated; `None` if everything is.
        self.problem = problem

    def ok(self, value: Any) -> bool:
        """Whether a value is valid."""
        return self._is_clearly_valid(value) or not self._look_closely(value)

    def _is_clearly_valid(self, value: Any) -> bool:
        """Whether the library says so; a no isn't the last word (a lone surrogate is one it can't read)."""
        try:
            return is_sane(value) and self.is_valid(value)
        except Exception:
            return False

    def violations(self, value: Any) -> list[Violation]:
        """Everything that is wrong with a value, in the order of the paths; empty if it is valid."""
        return [] if self._is_clearly_valid(value) else self._look_closely(value)

    def _look_closely(self, value: Any) -> list[Violation]:
        if self._compiled is None:
            return []
        if not is_sane(value):
            return [Violation("", "is nested too deeply, or has an integer of more than 4,300 digits")]
        for seen in (_as_it_is, encodable):
            try:
                errors = list(islice(self._compiled.iter_errors(seen(value)), MAX_VIOLATIONS))
                found = {violation for error in errors for violation in tell(error, self.schema)}
                return sorted(found, key=lambda violation: (violation.path, violation.message))
            except Exception as error:
                problem = one_line(describe_exception(error))
        return [Violation("", f"can't be validated: {problem}")]


def _as_it_is(value: Any) -> Any:
    return value
