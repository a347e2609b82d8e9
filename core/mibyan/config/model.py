"""The pydantic types of the sections, made from their annotations when something has to be checked or described."""

from __future__ import annotations

import collections.abc
import sys
import typing
from functools import cache
from typing import TYPE_CHECKING, Any

from mibyan.config import kinds
from mibyan.config.section import Key, Section, to_plain
from mibyan.schema.adapters import adapter_class

if TYPE_CHECKING:
    from pydantic import TypeAdapter


@cache
def key_adapter(name: str) -> TypeAdapter[Any]:
    """What checks one key of the settings: gives what was written, in the form that `settings_from_data` takes.

    One for each key, made when it is needed: that of the whole settings takes a hundred milliseconds to make.
    """
    from mibyan.config.settings import Settings

    return adapter_class()(_hints(Settings)[name])


def settings_adapter() -> TypeAdapter[Any]:
    """What checks, and describes, the settings as a whole."""
    from mibyan.config.settings import Settings

    return adapter_class()(typing.cast(Any, Settings))


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

    hints = _hints(kind)
    parts = {
        name: typing.Annotated[hints[name], Field(description=part.description, json_schema_extra=_default(part))]
        for name, part in kind.KEYS.items()
    }
    make: Any = TypedDict  # type checkers want its keys written out
    made = make(kind.__name__, parts, total=False)
    made.__doc__ = kind.__doc__
    return with_config({"extra": "forbid"})(made)


def _hints(kind: type[Section]) -> dict[str, Any]:
    """The annotations of a section's keys."""
    general = {**vars(typing), "Mapping": collections.abc.Mapping, "Key": Key}
    names = {**general, **vars(kinds), **vars(sys.modules[kind.__module__])}
    return typing.get_type_hints(kind, names, include_extras=True)


def _default(part: Key) -> dict[str, Any]:
    """What the JSON Schema says of a key's default; those of a section are told by its own keys."""
    return {} if isinstance(part.default, Section) else {"default": to_plain(part.default)}


def _or_empty(value: Any) -> Any:
    """An empty mapping for nothing, else `value`."""
    return {} if value is None else value
