"""`@mibyan.tool`: a typed function as a tool."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, overload

from mibyan.tools.context import ToolContext
from mibyan.tools.current import CURRENT, acting
from mibyan.tools.registration import build_entry, check_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mibyan.schema.signature import FunctionSchema
    from mibyan.tools.entry import Requirements, ToolEntry
    from mibyan.tools.owner import Owner

#: What an entry has beside the options of `registry.register`.
_NOT_OPTIONS = frozenset({"activate", "bind", "origin", "requires", "schema", "handler", "owner"})

P = ParamSpec("P")
R = TypeVar("R")


class ToolFunction(Generic[P, R]):
    """A function with all that it takes to register it; calling it calls the function.

    The schema comes from the signature and the docstring; both are read on first use.
    """

    def __init__(
        self,
        function: Callable[P, R],
        *,
        toolset: str,
        name: str | None = None,
        description: str | None = None,
        override: bool = False,
        local_names: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        self.function = function
        self.name: str = getattr(function, "__name__", "") if name is None else name
        self.toolset = toolset
        self.override = override
        #: The keywords of `registry.register`, as given.
        self.options: dict[str, Any] = options
        self._description = description
        self._local_names = local_names
        self._described: FunctionSchema | None = None
        self._schema: Mapping[str, Any] | None = None
        for attribute in ("__name__", "__qualname__", "__doc__", "__module__", "__wrapped__"):
            setattr(self, attribute, getattr(function, attribute, None))
        self.__wrapped__ = function

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function itself, past the pipeline."""
        return self.function(*args, **kwargs)

    @property
    def described(self) -> FunctionSchema:
        """The function's signature as a schema."""
        if self._described is None:
            from mibyan.schema.signature import describe_function

            self._described = describe_function(
                self.function, name=self.name, description=self._description,
                context_type=ToolContext, localns=self._local_names,
            )  # fmt: skip
        return self._described

    @property
    def direct(self) -> Callable[..., Any] | None:
        """The function itself, where valid JSON arguments are its keyword arguments as they are."""
        return self.function if self.described.takes_json else None

    @property
    def schema(self) -> Mapping[str, Any]:
        """The model-facing schema, read-only.

        Raises:
            ToolSchemaError: The signature can't be expressed as JSON Schema.
        """
        if self._schema is None:
            from mibyan.schema.definition import normalise_schema
            from mibyan.schema.frozen import freeze

            described = self.described
            raw = {"name": self.name, "description": described.description, "parameters": described.parameters}
            made: Mapping[str, Any] = freeze(normalise_schema(self.name, raw))
            # Another thread may have made the same meanwhile.
            self._schema = self._schema or made
        return self._schema

    def presume(self, schema: Mapping[str, Any], made_of: str) -> None:
        """Take a schema that was made earlier of just what this one would be made of.

        Args:
            schema: The schema, read-only.
            made_of: What it was made of (`FunctionSchema.made_of`).
        """
        if self._schema is None and made_of == self.described.made_of:
            self._schema = schema

    def entry(self, owner: Owner, *, requires: Requirements | None = None, origin: str | None = None) -> ToolEntry:
        """The entry that registers this tool for `owner`.

        Raises:
            ToolSchemaError: The name or the signature can't be a tool's.
        """
        name = check_name(self.name)
        refused = sorted(self.options.keys() & _NOT_OPTIONS)
        if refused:
            raise TypeError(f"tool {name!r}: @mibyan.tool has no option {refused[0]!r}.")
        described = self.described
        if not described.is_plain:
            _ = self.schema  # An annotation that has no schema is the author's to mend now, not the model's later.
        options = {"is_async": described.is_async, **self.options}
        return build_entry(
            owner, name, self.toolset, partial(_read_schema, self), self._handle,
            description=self._description, requires=requires, bind=described.bind,
            origin=origin or self._origin(), **options,
        )  # fmt: skip

    def _handle(self, args: dict[str, Any], context: ToolContext | None = None) -> Any:
        """The handler: `args` are the keyword arguments that `bind` made."""
        parameter = self.described.context_parameter
        if parameter is not None:
            args = {**args, parameter: context}
        return self.function(**args)  # type: ignore[call-arg]

    def _origin(self) -> str | None:
        code = getattr(self.function, "__code__", None)
        return f"{code.co_filename}:{code.co_firstlineno}" if code else None

    def __repr__(self) -> str:
        return f"<ToolFunction {self.name!r} (toolset {self.toolset!r})>"


def function_of(entry: ToolEntry) -> ToolFunction[..., Any] | None:
    """The typed function that an entry was made of."""
    made = getattr(entry.schema_source, "args", ())
    return made[0] if made and isinstance(made[0], ToolFunction) else None


def _read_schema(function: ToolFunction[..., Any]) -> Mapping[str, Any]:
    """The schema, which a function's own types may have a say in: whoever reads it, they act in nobody's name."""
    with acting(None):
        return function.schema


@overload
def tool(function: Callable[P, R], /) -> ToolFunction[P, R]: ...
@overload
def tool(
    *, toolset: str | None = None, name: str | None = None, description: str | None = None, override: bool = False,
    **options: Any,
) -> Callable[[Callable[P, R]], ToolFunction[P, R]]: ...  # fmt: skip
def tool(
    function: Callable[P, R] | None = None,
    /,
    *,
    toolset: str | None = None,
    name: str | None = None,
    description: str | None = None,
    override: bool = False,
    **options: Any,
) -> Any:
    """Make a tool of a typed function; also as `@tool` alone.

    At module level of a plugin the tool is registered when the plugin is loaded; in a host,
    `runtime.registry.add(function)` registers it.

    Args:
        function: The function, when used without parentheses.
        toolset: The bundle it belongs to; the module's last name if left out.
        name: The function's name if left out.
        description: What the model reads; the docstring's text before its sections if left out.
        override: Take the name from another owner (see `ToolRegistry.register`).
        **options: The other keywords of `ToolRegistry.register`.

    Returns:
        A `ToolFunction`, or the decorator that makes one.

    Raises:
        TypeError: An option isn't known or has the wrong type (when the tool is registered).
    """
    frame = sys._getframe(1)
    local_names = None if frame.f_locals is frame.f_globals else dict(frame.f_locals)

    def decorate(target: Callable[P, R]) -> ToolFunction[P, R]:
        if not callable(target):
            msg = f"@mibyan.tool takes a function, not {type(target).__name__}."
            raise TypeError(msg)
        bundle = toolset or str(getattr(target, "__module__", "tools")).rpartition(".")[2].strip("_") or "tools"
        made = ToolFunction(target, toolset=bundle, name=name, description=description, override=override,
                            local_names=local_names, **options)  # fmt: skip
        current = CURRENT.get()
        if current is not None and current.collect is not None:
            current.collect(made)
        return made

    return decorate if function is None else decorate(function)
