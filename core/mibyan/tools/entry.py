"""`ToolEntry`: all that is known about one registered tool."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from mibyan.records import field_names, record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from mibyan.tools.owner import Owner

    Handler: TypeAlias = Callable[..., Any]
    CheckFn: TypeAlias = Callable[[], Any]
    Timeout: TypeAlias = float | Callable[[dict[str, Any]], float | None] | None


@record
class Requirements:
    """What a manifest says a tool needs; it counts for availability and is decided without an import."""

    #: Names of environment variables that must be set and not empty.
    env: tuple[str, ...] = ()
    #: Programs that must be on `PATH`.
    bins: tuple[str, ...] = ()
    #: Modules that must be importable (looked up, not imported).
    modules: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.env or self.bins or self.modules)


#: What most tools need.
NO_REQUIREMENTS = Requirements()


@record(eq=False)
class ToolEntry:
    """One registered tool, immutable.

    The attributes of the model-facing side are `name`, `toolset` and `schema`; the rest says how the tool is run.
    """

    name: str
    toolset: str
    #: The schema, or what builds it on first use (typed functions); read it as `schema`.
    schema_source: Mapping[str, Any] | Callable[[], Mapping[str, Any]]
    #: `handler(args: dict, **context)`; for a lazy entry it isn't known yet (see `activate`).
    handler: Handler | None
    owner: Owner
    check_fn: CheckFn | None = None
    requires_env: tuple[str, ...] = ()
    is_async: bool = False
    #: Text for people; the model sees `schema["description"]` only.
    description: str = ""
    emoji: str = ""
    aliases: tuple[str, ...] = ()
    #: Seconds, or a callable of the arguments that gives seconds; `None`: `dispatch.timeout`.
    timeout: Timeout = None
    #: Characters of a result; `None`: `dispatch.max_result_chars`.
    max_result_size_chars: int | None = None
    dynamic_schema_overrides: Callable[[], Mapping[str, Any]] | None = None
    approval: Callable[..., Any] | None = None
    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False
    open_world: bool = True
    parallel: bool | None = None
    reads: Callable[[dict[str, Any]], Iterable[str]] | None = None
    writes: Callable[[dict[str, Any]], Iterable[str]] | None = None
    interactive: bool = False
    thread: Literal["caller", "pool", "dedicated"] = "caller"
    loop: Literal["runtime"] | None = None
    check_ttl: float | None = None
    check_grace: float | None = None
    cache: bool = False
    defer: bool = False
    untrusted_output: bool = False
    #: `"agent"`: answered by the session's own handlers (dispatch.C3).
    handled_by: str | None = None
    #: `False`: arguments are neither coerced nor validated; `None`: as `dispatch.validate` says.
    validate: bool | None = None
    #: What a manifest declares; decides availability without an import.
    requires: Requirements = NO_REQUIREMENTS
    #: For typed functions: turns validated JSON arguments into the function's keyword arguments, or raises.
    bind: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    #: For a lazy entry: imports the plugin, which replaces this entry by the real one.
    activate: Callable[[], None] | None = None
    #: Where it was registered: `file:line`, or the manifest's path.
    origin: str | None = None

    @property
    def schema(self) -> Mapping[str, Any]:
        """The model-facing schema, read-only: `{"name", "description", "parameters", ...}`."""
        source = self.schema_source
        return source() if callable(source) else source

    @property
    def plugin_id(self) -> str | None:
        """The plugin it belongs to; `None` for the host's own tools."""
        return self.owner.plugin_id

    @property
    def annotations(self) -> dict[str, bool]:
        """The hints of MCP's tool annotations (2025-06-18, server/tools)."""
        return {
            "readOnlyHint": self.read_only,
            "destructiveHint": self.destructive,
            "idempotentHint": self.idempotent,
            "openWorldHint": self.open_world,
        }


class Draft:
    """A `ToolEntry` in the making, with the defaults of what has one.

    A frozen dataclass sets each of its fields the long way round; thirty of them would be a quarter of what a
    registration costs.
    """

    __slots__ = field_names(ToolEntry)

    def __init__(self) -> None:
        none: Any = None
        self.check_fn = self.timeout = self.max_result_size_chars = self.dynamic_schema_overrides = self.approval = none
        self.parallel = self.reads = self.writes = self.loop = self.check_ttl = self.check_grace = none
        self.handled_by = self.validate = self.bind = self.activate = self.origin = none
        self.is_async = self.read_only = self.destructive = self.idempotent = self.interactive = False
        self.cache = self.defer = self.untrusted_output = False
        self.open_world = True
        names: tuple[str, ...] = ()
        self.requires_env = self.aliases = names
        self.description = self.emoji = ""
        self.thread = "caller"
        self.requires = NO_REQUIREMENTS

    def sealed(self) -> ToolEntry:
        """The entry; nothing can be set any more."""
        self.__class__ = ToolEntry  # type: ignore[assignment]
        return self  # type: ignore[return-value]

    if TYPE_CHECKING:

        def __setattr__(self, name: str, value: Any) -> None: ...
