"""Schemas that are made when they are asked for: a tool's own overrides and the patches of plugins (registry.D1)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

from mibyan.errors import ToolSchemaError
from mibyan.report import Decision, turn_off
from mibyan.schema.definition import normalise_schema

if TYPE_CHECKING:
    from collections.abc import Callable

    from mibyan.report import DecisionLog
    from mibyan.tools.current import acting
    from mibyan.tools.entry import ToolEntry
    from mibyan.tools.owner import Owner

    #: `patch(schemas by name, names) -> {tool: schema changes}`: what `mibyan_patch_definitions` says, merged.
    Patch: TypeAlias = Callable[
        [Mapping[str, Mapping[str, Any]], tuple[str, ...]], Mapping[str, Mapping[str, Any]] | None
    ]
    #: A schema by each tool's name.
    Schemas: TypeAlias = dict[str, Mapping[str, Any]]

#: Warnings remembered, so that each is said once.
_REMEMBERED = 4096


class SchemaChanges:
    """Applies overrides and patches to schemas; what can't be used leaves the schema as it was, with one WARNING.

    Args:
        log: Where decisions go.
        acting_as: Lets code of a tool's owner run in its name.
        clean: Takes secrets out of a text.
    """

    def __init__(
        self, log: DecisionLog, acting_as: Callable[[Owner], acting], clean: Callable[[str], str] = str
    ) -> None:
        self._log = log
        self._clean = clean
        self._acting_as = acting_as
        #: What was warned about, and which registration it concerned: a new one is warned about anew.
        self._warned: dict[tuple[str, str], ToolEntry | None] = {}

    def override(self, entry: ToolEntry) -> str | None:
        """What a tool's `dynamic_schema_overrides` says now, as JSON text; `None`: nothing that can be used.

        Text, since it must neither change afterwards nor be mistaken for something equal (`1` and `true`).
        """
        if entry.dynamic_schema_overrides is None:
            return None
        with self._acting_as(entry.owner):
            try:
                return json.dumps(dict(_mapping(entry.dynamic_schema_overrides())), allow_nan=False)
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                reason = self._because(error)
        self._warn(entry, "dynamic_schema_overrides", reason)
        return None

    def overridden(self, entry: ToolEntry, override: str | None) -> Mapping[str, Any]:
        """The tool's schema with an override merged in, shallowly."""
        if override is None:
            return entry.schema
        return self._merged(entry, entry.schema, json.loads(override), "dynamic_schema_overrides")

    def patch(self, entries: Mapping[str, ToolEntry], schemas: Schemas, patch: Patch) -> None:
        """Merge into `schemas` what the plugins' patches say about them, shallowly.

        Args:
            entries: The tools that survived, by name, in the order of names.
            schemas: Their schemas, changed in place.
            patch: The hook.
        """
        try:
            patches = patch(MappingProxyType(schemas.copy()), tuple(entries))
            changes = [] if patches is None else list(_mapping(patches).items())
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            self._warn(None, "mibyan_patch_definitions", self._because(error))
            return
        for name, change in changes:
            entry = entries.get(name) if isinstance(name, str) else None
            if entry is None:
                self._warn(None, f"mibyan_patch_definitions for {name!r:.80}", "no tool of that name is shown")
            elif not isinstance(change, Mapping):
                self._warn(entry, "mibyan_patch_definitions", f"it gave {type(change).__name__}, expected a dict")
            else:
                schemas[name] = self._merged(entry, schemas[name], change, "mibyan_patch_definitions")

    def _merged(
        self, entry: ToolEntry, schema: Mapping[str, Any], changes: Mapping[str, Any], source: str
    ) -> Mapping[str, Any]:
        try:
            merged = {**schema, **changes}
            if merged.get("name") != entry.name:
                self._warn(entry, f"{source} (name)", "it may not change the name")
            return normalise_schema(entry.name, merged)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            self._warn(entry, source, self._because(error))
            return schema

    def _because(self, error: BaseException) -> str:
        from mibyan.text import describe_exception, one_line, without_addresses

        text = error.message if isinstance(error, ToolSchemaError) else describe_exception(error)
        return one_line(without_addresses(self._clean(text)), 500)

    def _warn(self, entry: ToolEntry | None, source: str, reason: str) -> None:
        """Say once what was wrong with the changes of `source`, in the log and in the report."""
        key = (source, "" if entry is None else entry.name)
        if key in self._warned and self._warned[key] is entry:
            return
        if len(self._warned) >= _REMEMBERED:
            self._warned.clear()
        self._warned[key] = entry
        subject = "hook:mibyan_patch_definitions" if entry is None else f"tool:{entry.name}"
        whose = "" if entry is None else f" of tool {entry.name!r}"
        text = f"{source}{whose} isn't used, the schema stays as it was: {reason}."
        plugin_id, origin = (None, None) if entry is None else (entry.plugin_id, entry.origin)
        self._log.add(
            Decision("warning", subject, text, plugin_id, origin, turn_off(plugin_id), problem=True, rule="registry.D1")
        )
        import logging

        logging.getLogger("mibyan.toolsets").warning("%s", text)


def _mapping(value: object) -> Mapping[Any, Any]:
    """`value`, if it is a mapping.

    Raises:
        TypeError: It isn't.
    """
    if isinstance(value, Mapping):
        return value
    close = getattr(value, "close", None)
    if hasattr(value, "__await__") and callable(close):
        close()  # nobody will await it, and it would complain at some later moment
    raise TypeError(f"it gave {type(value).__name__}, expected a dict")
