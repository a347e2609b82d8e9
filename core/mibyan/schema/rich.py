"""Types beyond JSON's own (models, dataclasses, dates, enums, constraints): pydantic knows them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from mibyan.errors import ToolSchemaError
from mibyan.schema.adapters import adapter_class
from mibyan.schema.parts import rewrite
from mibyan.schema.place import place
from mibyan.schema.plaintypes import is_field
from mibyan.schema.typeddicts import acceptable
from mibyan.schema.violations import BindError, Violation
from mibyan.text import describe_exception, one_line

if TYPE_CHECKING:
    from pydantic import TypeAdapter
    from pydantic.json_schema import GenerateJsonSchema

    from mibyan.schema.annotations import Scope


class RichTypes:
    """The parameters of one function whose types pydantic must see to.

    Args:
        tool: The tool's name, for errors.
        types: Annotation and default by parameter; pydantic's `Field(...)` may be the default.
        scope: Where the function was defined: its types' own annotations may be text that means something there.

    Raises:
        ToolSchemaError: pydantic has no schema for a type.
    """

    def __init__(self, tool: str, types: dict[str, tuple[Any, Any]], scope: Scope) -> None:
        self._tool = tool
        self._scope = scope
        self._fields = {name: default for name, (_, default) in types.items() if is_field(default)}
        self._adapters = {name: self._adapter(name, *each) for name, each in types.items()}

    def _adapter(self, name: str, annotation: Any, default: Any) -> TypeAdapter[Any]:
        local_names = self._scope.local_names()
        annotation = acceptable(annotation, local_names)
        if name in self._fields:
            annotation = Annotated[annotation, default]
        try:
            # pydantic looks names up in the frame that calls it: that is how to give it a function's scope.
            global_names = {**self._scope.global_names(), "__adapter__": adapter_class(), "__type__": annotation}
            made: TypeAdapter[Any] = eval("__adapter__(__type__)", global_names, local_names)  # noqa: S307 - no text of others
            return made
        except Exception as error:  # pydantic's own, or of a type's `__get_pydantic_core_schema__`
            raise self._refused(name, error) from error

    def _refused(self, name: str, error: Exception) -> ToolSchemaError:
        what = one_line(describe_exception(error).partition("\n")[0])
        msg = f"tool {self._tool!r}: parameter {name!r} has a type without a JSON Schema ({what})"
        return ToolSchemaError(msg, hint="Use JSON's types, dataclasses, TypedDicts or pydantic models.")

    def schemas(self) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
        """The JSON Schema of each parameter, and the `$defs` that they share; titles are dropped.

        Raises:
            ToolSchemaError: A type can be validated but not be expressed.
        """
        for name, adapter in self._adapters.items():
            try:
                adapter.json_schema(schema_generator=_generator())
            except Exception as error:
                raise self._refused(name, error) from error
        mode: Literal["validation"] = "validation"
        inputs = [(name, mode, adapter) for name, adapter in self._adapters.items()]
        found, shared = adapter_class().json_schemas(inputs, schema_generator=_generator())
        schemas = {name: rewrite(schema, _untitled) for (name, _), schema in found.items()}
        definitions = {name: rewrite(schema, _untitled) for name, schema in shared.get("$defs", {}).items()}
        return schemas, definitions

    def bind(self, bound: dict[str, Any]) -> dict[str, Any]:
        """The arguments with Python values where pydantic makes them; `Field` defaults are filled in.

        Raises:
            BindError: A value isn't what its type takes.
        """
        violations: list[Violation] = []
        found = dict(bound)
        for name, adapter in self._adapters.items():
            if name in bound:
                found[name] = _validated(name, bound[name], adapter, violations)
            elif name in self._fields:
                found[name] = self._fields[name].get_default(call_default_factory=True)
        if violations:
            raise BindError(violations)
        return found


def _validated(name: str, value: Any, adapter: TypeAdapter[Any], violations: list[Violation]) -> Any:
    """The Python value of a JSON value; what is wrong with it goes to `violations`."""
    try:
        return adapter.validate_python(value)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        problems = getattr(error, "errors", None)
        if not callable(problems):
            violations.append(Violation(name, one_line(describe_exception(error))))
            return value
        found = problems(include_url=False, include_context=False, include_input=False)
        violations += [Violation(place([name, *each["loc"]]), one_line(each["msg"])) for each in found]
    return value


def _generator() -> type[GenerateJsonSchema]:
    """Pydantic's generator, without its warnings: a default that JSON can't say is left out here anyway."""
    from pydantic.json_schema import GenerateJsonSchema

    class Generator(GenerateJsonSchema):
        ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012 - pydantic's attribute

    return Generator


def _untitled(schema: dict[str, Any]) -> dict[str, Any]:
    schema.pop("title", None)
    return schema
