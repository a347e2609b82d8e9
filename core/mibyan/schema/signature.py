"""A typed function as a tool: its schema from its signature and docstring, its arguments from JSON."""

from __future__ import annotations

import math
from types import FunctionType
from typing import TYPE_CHECKING, Any, NoReturn

from mibyan.errors import ToolSchemaError
from mibyan.records import record
from mibyan.schema.annotations import Scope, means
from mibyan.schema.docstrings import Documentation, read_docstring
from mibyan.schema.plaintypes import converter, is_field, is_plain, plain_schema
from mibyan.schema.violations import BindError, Violation
from mibyan.text import describe_exception, one_line, without_addresses

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from mibyan.schema.plaintypes import Converter
    from mibyan.schema.rich import RichTypes

__all__ = ["BindError", "FunctionSchema", "Parameter", "describe_function"]

#: There is no default.
REQUIRED: Any = object()

_UNNAMED = ("positional-only", "*args", "**kwargs")
_VARARGS, _VARKEYWORDS, _COROUTINE = 0x04, 0x08, 0x80


@record
class Parameter:
    """One parameter that the model fills."""

    name: str
    #: Its type; `Any` where the function names none.
    annotation: Any
    #: Its default; `REQUIRED` if it has none; perhaps pydantic's `Field(...)`.
    default: Any = REQUIRED
    #: Whether the model must give it.
    required: bool = True
    #: Whether its type is made of JSON's types only.
    is_plain: bool = True
    #: For plain types: what makes the Python value; `None`: the JSON value is it.
    convert: Converter | None = None


class FunctionSchema:
    """What a model and a runtime need to know of a typed function.

    The schema and the docstring are read when they are first asked for.
    """

    def __init__(self, function: Callable[..., Any], name: str, description: str | None, parameters: list[Parameter],
                 context_parameter: str | None, scope: Scope, *, is_async: bool) -> None:  # fmt: skip
        #: The tool's name.
        self.name = name
        #: The parameter that gets the `ToolContext`; `None` if there is none.
        self.context_parameter = context_parameter
        #: Whether calling the function gives a coroutine.
        self.is_async = is_async
        #: Whether every parameter's type is made of JSON's types only: no library is asked, nothing can fail later.
        self.is_plain = all(parameter.is_plain for parameter in parameters)
        self._function = function
        self._description = description
        self._scope = scope
        self._parameters = {parameter.name: parameter for parameter in parameters}
        self._converted = [(p.name, p.convert) for p in parameters if p.convert is not None]
        self._required = [p.name for p in parameters if p.required]
        #: Whether valid JSON values are the function's arguments as they are, and all of them.
        self.takes_json = self.is_plain and not self._converted and context_parameter is None
        self._documentation: Documentation | None = None
        self._schema: dict[str, Any] | None = None
        self._rich: RichTypes | None = None

    @property
    def made_of(self) -> str | None:
        """All that the schema and the description are made of, as text; `None` where libraries have a say in them."""
        if not self.is_plain:
            return None
        said = [(p.name, p.annotation, p.default, p.required) for p in self._parameters.values()]
        made_of = (self.name, self._description, getattr(self._function, "__doc__", None), said)
        return without_addresses(repr(made_of))  # the text is compared with that of another process

    @property
    def description(self) -> str:
        """What the model reads: what was given, else the docstring's text before its sections."""
        return self._documented().description if self._description is None else self._description

    @property
    def parameters(self) -> dict[str, Any]:
        """The JSON Schema of the arguments, an object without further keys.

        Raises:
            ToolSchemaError: A type can't be expressed in JSON Schema.
        """
        if self._schema is None:
            self._schema = self._build()
        return self._schema

    def bind(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """The function's keyword arguments, as Python values of its types.

        Args:
            args: JSON values by parameter, valid against `parameters`; defaults are the function's own business.

        Raises:
            BindError: A value isn't what its type takes, a parameter is missing or unknown.
        """
        bound = dict(args)
        if bound.keys() - self._parameters.keys() or any(name not in bound for name in self._required):
            raise BindError(list(self._mismatches(bound)))
        for name, convert in self._converted:
            if name in bound:
                bound[name] = convert(bound[name])
        return bound if self.is_plain else self._rich_types().bind(bound)

    def _mismatches(self, bound: Mapping[str, Any]) -> Iterator[Violation]:
        for name in bound.keys() - self._parameters.keys():
            yield Violation(str(name), "unknown key")
        for name in self._required:
            if name not in bound:
                yield Violation(name, "is required")

    def _documented(self) -> Documentation:
        if self._documentation is None:
            self._documentation = read_docstring(getattr(self._function, "__doc__", None))
        return self._documentation

    def _rich_types(self) -> RichTypes:
        if self._rich is None:
            from mibyan.schema.rich import RichTypes

            types = {p.name: (p.annotation, p.default) for p in self._parameters.values() if not p.is_plain}
            self._rich = RichTypes(self.name, types, self._scope)
        return self._rich

    def _build(self) -> dict[str, Any]:
        properties: dict[str, Any] = {}
        rich, definitions = ({}, {}) if self.is_plain else self._rich_types().schemas()
        texts = self._documented().parameters
        for name, parameter in self._parameters.items():
            schema = plain_schema(parameter.annotation) if parameter.is_plain else rich[name]
            if name in texts:
                schema.setdefault("description", texts[name])
            if _is_json(parameter.default):
                schema.setdefault("default", parameter.default)
            properties[name] = schema
        found: dict[str, Any] = {"type": "object", "properties": properties}
        if self._required:
            found["required"] = list(self._required)
        found["additionalProperties"] = False
        return {**found, "$defs": definitions} if definitions else found


def describe_function(
    function: Callable[..., Any],
    *,
    name: str | None = None,
    description: str | None = None,
    context_type: type | None = None,
    localns: Mapping[str, Any] | None = None,
) -> FunctionSchema:
    """What a model and a runtime need to know of a typed function.

    Args:
        function: A function (also `async def`), or anything callable that has a signature.
        name: The tool's name; the function's if left out.
        description: What the model reads; the docstring's text before its sections if left out.
        context_type: The class by which the one parameter is known that the model doesn't fill.
        localns: Names of the scope in which the function is defined, for annotations that mean them.

    Raises:
        ToolSchemaError: A parameter can't be given by name, or its annotation can't be resolved.
    """
    name = str(getattr(function, "__name__", "tool")) if name is None else name
    inner = _unwrapped(function)
    scope = Scope(inner, localns, {context_type.__name__: context_type} if context_type else {})
    context_parameter = None
    parameters = []
    for each, kind, annotation, default in _signature(name, inner):
        if kind in _UNNAMED:
            _refuse(name, each, f"takes {kind} arguments, and a model gives each by its name", "Use named parameters.")
        resolved = _resolved(name, each, annotation, scope)
        if means(resolved, context_type):
            if context_parameter is not None:
                _refuse(name, each, f"is a second context beside {context_parameter!r}", "Keep one of them.")
            context_parameter = each
        else:
            parameters.append(_parameter(each, resolved, default))
    return FunctionSchema(function, name, description, parameters, context_parameter, scope, is_async=_is_async(inner))


def _unwrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function that decorators have wrapped (`functools.wraps`), whose signature counts."""
    for _ in range(100):
        inner = getattr(function, "__wrapped__", None)
        if inner is None:
            break
        function = inner
    return function


def _signature(tool: str, function: Callable[..., Any]) -> Iterator[tuple[str, str, Any, Any]]:
    """Name, kind, annotation and default of each parameter."""
    if type(function) is FunctionType:
        return _quick_signature(function)
    return _general_signature(tool, function)


def _quick_signature(function: FunctionType) -> Iterator[tuple[str, str, Any, Any]]:
    """As `inspect.signature` tells it, in a tenth of the time."""
    code, hints = function.__code__, function.__annotations__
    count, keywords = code.co_argcount, code.co_kwonlyargcount
    names = code.co_varnames
    defaults = function.__defaults__ or ()
    for index, name in enumerate(names[:count]):
        kind = "positional-only" if index < code.co_posonlyargcount else ""
        default = defaults[index - count] if index >= count - len(defaults) else REQUIRED
        yield name, kind, hints.get(name, Any), default
    for name in names[count : count + keywords]:
        yield name, "", hints.get(name, Any), (function.__kwdefaults__ or {}).get(name, REQUIRED)
    rest = names[count + keywords :]
    if code.co_flags & _VARARGS:
        yield rest[0], "*args", Any, REQUIRED
    if code.co_flags & _VARKEYWORDS:
        yield rest[bool(code.co_flags & _VARARGS)], "**kwargs", Any, REQUIRED


def _general_signature(tool: str, function: Callable[..., Any]) -> Iterator[tuple[str, str, Any, Any]]:
    import inspect

    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError) as error:
        msg = f"tool {tool!r}: {type(function).__name__} has no signature to make a schema of"
        raise ToolSchemaError(msg, hint="Wrap it in a typed function.") from error
    kinds: dict[object, str] = {
        inspect.Parameter.POSITIONAL_ONLY: "positional-only",
        inspect.Parameter.VAR_POSITIONAL: "*args",
        inspect.Parameter.VAR_KEYWORD: "**kwargs",
    }
    for each in signature.parameters.values():
        annotation = Any if each.annotation is each.empty else each.annotation
        yield each.name, kinds.get(each.kind, ""), annotation, REQUIRED if each.default is each.empty else each.default


def _resolved(tool: str, parameter: str, annotation: Any, scope: Scope) -> Any:
    try:
        return scope.resolve(annotation)
    except Exception as error:  # an annotation is an expression and may do anything
        reason = f"has an annotation that can't be resolved ({one_line(describe_exception(error))})"
        _refuse(
            tool, parameter, reason, "Names that only a type checker sees (TYPE_CHECKING) aren't there at run time."
        )


def _parameter(name: str, annotation: Any, default: Any) -> Parameter:
    if is_field(default):
        return Parameter(name, annotation, default, default.is_required(), is_plain=False)
    plain = is_plain(annotation)
    return Parameter(name, annotation, default, default is REQUIRED, plain, converter(annotation) if plain else None)


def _is_async(function: Callable[..., Any]) -> bool:
    if type(function) is FunctionType and function.__code__.co_flags & _COROUTINE:
        return True
    import inspect

    if inspect.iscoroutinefunction(function):
        return True
    return inspect.iscoroutinefunction(vars(type(function)).get("__call__"))


def _is_json(value: Any, depth: int = 32) -> bool:
    """Whether a default is a JSON value, and so can stand in a schema."""
    kind = type(value)
    if kind is float:
        return math.isfinite(value)
    if kind is list:
        return depth > 0 and all(_is_json(item, depth - 1) for item in value)
    if kind is dict:
        return depth > 0 and all(type(k) is str and _is_json(v, depth - 1) for k, v in value.items())
    return value is None or kind in {str, int, bool}


def _refuse(tool: str, parameter: str, reason: str, hint: str) -> NoReturn:
    """Refuse a function as a tool.

    Raises:
        ToolSchemaError: Always.
    """
    msg = f"tool {tool!r}: parameter {parameter!r} {reason}"
    raise ToolSchemaError(msg, hint=hint)
