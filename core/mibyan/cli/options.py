"""The options of `mibyan` itself: accepted before, after and between the words of a command."""

from __future__ import annotations

from typing import Any, Final

from mibyan.cli.declaring import Option
from mibyan.records import record


@record(frozen=False)
class Options:
    """What the options of `mibyan` said; filled while the words are read."""

    home: str | None = None
    project: str | None = None
    safe_mode: bool = False
    strict: bool = False
    locked: bool = False
    plugins: tuple[str, ...] = ()
    no_plugins: tuple[str, ...] = ()
    trace: str | None = None
    as_json: bool = False
    debug: bool = False

    def keep(self, name: str, value: Any) -> None:
        """Put an option's value in its place; lists grow, of other values the last one counts."""
        if value is None or value is False or value == ():
            return
        setattr(self, name, getattr(self, name) + value if isinstance(value, tuple) else value)


#: Each option, under the name that it has in `Options`.
OPTIONS: Final = (
    Option("--home", "home", "The profile's folder, instead of $MIBYAN_HOME or ~/.mibyan.", "DIR", choices="directories"),
    Option("--project", "project", "The project's folder, instead of the nearest one above that has .mibyan/.", "DIR", choices="directories"),
    Option("--safe-mode", "safe_mode", "Load built-in plugins only."),
    Option("--strict", "strict", "End with 3 if a plugin isn't ready or a toolset's name is unknown."),
    Option("--locked", "locked", "Refuse what differs from mibyan.lock."),
    Option("--plugin", "plugins", "Load this plugin too (an id, a module, or no:ID). May be repeated.", "ID", multiple=True, choices="plugins"),
    Option("--no-plugin", "no_plugins", "Don't load this plugin. May be repeated.", "ID", multiple=True, choices="plugins"),
    Option("--trace", "trace", "Append what happens in a call to FILE, a JSON line for each step.", "FILE", choices="files"),
    Option("--json", "as_json", "Print one JSON document."),
    Option("--debug", "debug", "Show tracebacks and all log records."),
)  # fmt: skip
