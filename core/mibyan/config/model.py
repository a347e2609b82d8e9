"""The pydantic types of the sections, made from their annotations when something has to be checked or described."""

from __future__ import annotations

import collections.abc
import sys
import typing
from typing import TYPE_CHECKING, Any

from mibyan.config import kinds
from mibyan.config.section import Key, Section, to_plain

if TYPE_CHECKING:
    from pydantic import TypeAdapter


def adapter(kind: type[Section]) -> TypeAdapter[dict[str, Any]]:
    """What checks a section: gives a dict of what was written, in the form that `Section.from_data` takes."""
    from pydantic import TypeAdapter

    return TypeAdapter(typing.cast(Any, kind))


def section_schema(kind: type[Section], handler: Any) -> Any:
    """The schema of a section for pydantic-core.

    One that was left empty (`dispatch:` with nothing below it) has its defaults.
    """
    from pydantic_core import core_schema

    return core_schema.no_info_before_validator_function(_or_empty, handler.generate_schema(_typed_dict(kind)))


def _typed_dict(kind: type[Section]) -> Any:
    """A typed dict of a section's keys with their kinds and sentences; unknown keys are errors.

    Not a model: keys may be called `validate` or `copy`, and what wasn't written must stay away.
    """
    from pydantic import Field, with_config
    from typing_extensions import TypedDict

    hints = typing.get_type_hints(kind, _names(kind), include_extras=True)
    parts = {
        name: typing.Annotated[
            hints[name], Field(description=part.description, json_schema_extra={"default": _default(part)})
        ]
        for name, part in kind.KEYS.items()
    }
    make: Any = TypedDict  # type checkers want its keys written out
    made = make(kind.__name__, parts, total=False)
    made.__doc__ = kind.__doc__
    return with_config({"extra": "forbid"})(made)


def _names(kind: type[Section]) -> dict[str, Any]:
    """What the names in a section's annotations stand for."""
    general = {**vars(typing), "Mapping": collections.abc.Mapping, "Key": Key}
    return {**general, **vars(kinds), **vars(sys.modules[kind.__module__])}


def _default(part: Key) -> Any:
    """A default in JSON types."""
    return to_plain(part.default)


def _or_empty(value: Any) -> Any:
    """An empty mapping for nothing, else `value`."""
    return {} if value is None else value
