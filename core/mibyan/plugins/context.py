"""`PluginContext`: what a plugin's `register(ctx)` is handed; all that it does through it is the plugin's (api.md, `ctx`)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from mibyan.errors import PluginError
from mibyan.plugins.gates import is_project_code
from mibyan.plugins.manifest import Manifest
from mibyan.plugins.offers import Offer
from mibyan.plugins.skills import skill_name, skill_path
from mibyan.report import Decision
from mibyan.text import plain_text

if TYPE_CHECKING:
    import logging
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from mibyan.plugins.candidate import Candidate
    from mibyan.plugins.ledger import Ledger
    from mibyan.plugins.offers import OfferKind, OfferTable
    from mibyan.plugins.plugin_registry import PluginRegistry
    from mibyan.plugins.services import LoaderServices
    from mibyan.tools.entry import ToolEntry


class PluginContext:
    """A plugin's side of the runtime it is loaded into.

    What it registers belongs to the plugin: it is taken back when the loading fails and when the plugin is unloaded.
    After that every method that registers something raises `PluginError`.
    """

    def __init__(
        self,
        candidate: Candidate,
        ledger: Ledger,
        registry: PluginRegistry,
        offers: OfferTable,
        services: LoaderServices,
        config: Mapping[str, Any],
        *,
        rank: int = 0,
    ) -> None:
        self._candidate = candidate
        self._ledger = ledger
        self._offers = offers
        self._services = services
        self._rank = rank
        self._manifest = candidate.manifest or Manifest(id=candidate.id, version=candidate.version)
        self._config = config
        self._registry = registry

    # What it is: read-only, since rights and folders go by it.

    @property
    def plugin_id(self) -> str:
        """The plugin's id."""
        return self._candidate.id

    @property
    def manifest(self) -> Manifest:
        """Its manifest; one with the id and the version alone if it has none."""
        return self._manifest

    @property
    def config(self) -> Mapping[str, Any]:
        """Its own settings, read-only: `plugins.entries.<id>.config`, valid by the manifest's `config_schema`, with its defaults."""
        return self._config

    @property
    def registry(self) -> PluginRegistry:
        """The registry as the plugin may use it, see `ToolRegistry`."""
        return self._registry

    # Registering -------------------------------------------------------------------------------------------------

    def register_tool(
        self,
        name: str,
        toolset: str,
        schema: Mapping[str, Any],
        handler: Callable[..., Any],
        *args: Any,
        **options: Any,
    ) -> ToolEntry | None:
        """Register a tool; arguments, result and errors as for `ToolRegistry.register`."""
        return self.registry.register(name, toolset, schema, handler, *args, **options)

    def register_toolset(
        self, name: str, tools: Iterable[str] = (), includes: Iterable[str] = (), description: str = ""
    ) -> bool:
        """Declare a toolset beside those that tools name as their own.

        Args:
            name: Its name.
            tools: Names of tools.
            includes: Names of toolsets that belong to it.
            description: One sentence for people.

        Returns:
            False when another plugin has a toolset of that name: it is in the report.

        Raises:
            TypeError: An argument has the wrong type.
            PluginError: The plugin isn't loaded any more.
        """
        from mibyan.tools.store import Toolset

        self._open(f"register the toolset {name!r}")
        name = _text(name, "register_toolset", "name")
        made = Toolset(name, _names(tools, "tools"), _names(includes, "includes"), description, "plugin",
                       self._candidate.origin, self._ledger.owner)  # fmt: skip
        self._ledger.note("toolset", name, (made.tools, made.includes, description))
        held = self._services.store.declare_toolset(made)
        if held is not None:
            whose = held.owner.id if held.owner is not None else held.origin
            self._reject(f"toolset:{name}", f"the toolset {name!r} belongs to plugin {whose!r}")
        return held is None

    def register_hook(self, name: str, function: Callable[..., Any]) -> bool:
        """Implement a hook.

        Args:
            name: A hook's name; an unknown one is put into the report with a suggestion.
            function: The implementation; it may take any subset of the hook's arguments, and be a coroutine function.

        Returns:
            Whether there is such a hook.

        Raises:
            TypeError: `function` isn't callable.
            PluginError: Its signature doesn't fit (both are shown), or the plugin isn't loaded any more.
        """
        self._open(f"register the hook {name!r}")
        name = _text(name, "register_hook", "name")
        if not callable(function):
            raise TypeError(f"register_hook({name!r}, ...) takes a function, not {type(function).__name__}.")
        taken = bool(self.add_hooks({name: function}))
        if self._ledger.announced is not None and name not in {*self.manifest.hooks, "mibyan_unload"}:
            self._ledger.drift.append(f"the hook {name!r}")
        return taken

    def register_command(
        self, name: str, handler: Callable[..., Any], description: str = "", args_hint: str = ""
    ) -> bool:
        """Offer a command for `mibyan command NAME …`.

        Args:
            name: The command's name.
            handler: `handler(text) -> text`, sync or async; it gets the arguments as one raw text.
            description: One sentence for people.
            args_hint: What the arguments look like.

        Returns:
            False when another plugin has a command of that name: it is in the report.

        Raises:
            TypeError: An argument has the wrong type.
            PluginError: The plugin isn't loaded any more.
        """
        self._open(f"register the command {name!r}")
        name = _text(name, "register_command", "name")
        if not callable(handler):
            raise TypeError(f"register_command({name!r}, ...) takes a callable, not {type(handler).__name__}.")
        self._ledger.note("command", name, (description, args_hint))
        return self._offer("command", name, handler, description, args_hint)

    def register_command_rule(
        self, rule_id: str, pattern: str, description: str, *, level: str = "dangerous", matches: Iterable[str] = (),
        misses: Iterable[str] = (),
    ) -> bool:  # fmt: skip
        """Add a rule about shell commands, beside the built-in ones and the operator's.

        It counts while the plugin's code is loaded: a plugin whose manifest has its tools is imported when one of them is
        called first.

        Args:
            rule_id: Small letters, digits and `_.-`; people grant it by this name.
            pattern: A regular expression, searched for in each simple command that would run: its words, decoded.
            description: A few words for people.
            level: `dangerous`: a person is asked; `hardline`: it is refused whatever anybody says.
            matches: Commands that it must find.
            misses: Commands that it mustn't.

        Returns:
            False when another plugin has a rule of that id: it is in the report.

        Raises:
            TypeError: An argument has the wrong type.
            MibyanError: The rule isn't right, or an example says otherwise.
            PluginError: The plugin isn't loaded any more, or the loader belongs to no runtime.
        """
        self._open(f"register the command rule {rule_id!r}")
        name = _text(rule_id, "register_command_rule", "rule_id")
        if self._services.make_rule is None:
            raise PluginError("register_command_rule needs a runtime", plugin_id=self.plugin_id)
        rule = self._services.make_rule(name, pattern, description, level=level, matches=matches, misses=misses)
        self._ledger.note_look(f"the command rule {name!r}")  # no manifest has it: the code is imported each time
        if self._ledger.announced is not None:
            self._ledger.drift.append(f"the command rule {name!r}")
        return self._offer("rule", name, rule, description)

    def register_skill(self, path: str | Path) -> bool:
        """Offer a skill: a folder with a `SKILL.md`, or such a file.

        Args:
            path: Relative to the plugin's folder, or absolute.

        Returns:
            False when another plugin has a skill of that name: it is in the report.

        Raises:
            PluginError: There is nothing at `path`, it leaves the plugin's folder, or the plugin isn't loaded any more.
        """
        self._open(f"register the skill {str(path)!r}")
        found = skill_path(self._candidate, path)
        self._ledger.note("skill", str(found))
        return self._offer("skill", skill_name(found), found)

    def provide(self, name: str, factory: Callable[..., Any]) -> bool:
        """Offer a service to the runtime and to other plugins: `rt.provided(name)` calls the factory on first use.

        Returns:
            False when another plugin provides that: it is in the report.

        Raises:
            TypeError: An argument has the wrong type.
            PluginError: The plugin isn't loaded any more.
        """
        self._open(f"provide {name!r}")
        name = _text(name, "provide", "name")
        if not callable(factory):
            raise TypeError(f"provide({name!r}, ...) takes a callable, not {type(factory).__name__}.")
        self._ledger.note("service", name)
        return self._offer("service", name, factory)

    def offer_cli(self, name: str) -> bool:
        """For the loader: offer a command of the command line that the manifest names; `mibyan_cli` adds it.

        Returns:
            False when it is Mibyan's own or another plugin's, or no word: it is in the report.
        """
        from mibyan.plugins.names import why_not_a_command

        why_not = why_not_a_command(name)
        if why_not is not None:
            self._reject(f"cli:{name}", f"the command {name!r} {why_not}", "another name under cli: in its manifest")
            return False
        return self._offer("cli", name, None)

    def on_unload(self, callback: Callable[[], Any]) -> None:
        """Call `callback` when the plugin is unloaded, its loading fails or the runtime closes; the last one first.

        Raises:
            TypeError: It isn't callable.
            PluginError: The plugin isn't loaded any more.
        """
        self._ledger.require_open("add a callback")
        if not callable(callback):
            raise TypeError(f"on_unload takes a callable, not {type(callback).__name__}.")
        self._ledger.callbacks.append(callback)

    # Using -------------------------------------------------------------------------------------------------------

    def dispatch_tool(self, name: str, args: Any = None) -> str:
        """Run another tool through the whole pipeline, hooks and approvals included; the text the model would get.

        Raises:
            PluginError: The loader belongs to no runtime, or the plugin isn't loaded any more.
        """
        self._ledger.require_open(f"call the tool {name!r}")
        self._ledger.note_look(f"the tool {name!r}")
        if self._services.dispatch_tool is None:
            raise PluginError("dispatch_tool needs a runtime", plugin_id=self.plugin_id)
        return self._services.dispatch_tool(name, {} if args is None else args, self._ledger.owner)

    @property
    def approvals(self) -> Any:
        """The questions that wait for an answer, to look at: `pending()`. To answer them is the host's."""
        return self._services.approvals

    @property
    def state(self) -> Path:
        """A folder of the plugin's own that outlives it: `$MIBYAN_HOME/state/<id>`, made on first use, for the user only.

        A project's plugin has one for each project, `<id>@<digest>`: what comes with a repository doesn't get at the
        state of a plugin of the same id.

        Raises:
            PluginError: It can't be made.
        """
        path = self._services.home / "state" / self._state_name()
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise PluginError(
                f"the plugin's folder {path} can't be made: {error.strerror or error}", plugin_id=self.plugin_id,
                origin=str(path), hint="Check the permissions of the folders above it.",
            ) from error  # fmt: skip
        return path

    @property
    def logger(self) -> logging.Logger:
        """The plugin's logger, `mibyan.plugins.<id>`."""
        import logging

        return logging.getLogger(f"mibyan.plugins.{self.plugin_id}")

    # For the loader ----------------------------------------------------------------------------------------------

    def add_hooks(self, implementations: object) -> tuple[str, ...]:
        """Add a module's, an object's or a mapping's implementations; the names of those that were taken.

        While a frozen plugin's code is imported only the hooks that its manifest names count; of a policy all do.

        Raises:
            PluginError: A signature doesn't fit.
        """
        narrowed = self._ledger.announced is not None and self.manifest.role != "policy"
        # Its `cli` says as much as the hook's name among its hooks.
        frozen = {*self.manifest.hooks, "mibyan_unload", *(["mibyan_cli"] if self.manifest.cli else [])}
        taken = self._services.hooks.register(
            self._ledger.owner, implementations, rank=self._rank, observer=is_observer(self.manifest),
            only=frozen if narrowed else None,
        )  # fmt: skip
        if "mibyan_cli" in taken and not self.manifest.cli:
            self._tell_cli()
        return taken

    def _tell_cli(self) -> None:
        """A hook that is never called: its author should know why."""
        reason = "it has the hook 'mibyan_cli', but its manifest names no command under cli:, so that adds nothing"
        self._services.log.add(
            Decision("warning", f"plugin:{self.plugin_id}", reason, self.plugin_id, self._candidate.origin,
                     "the plugin's author can mend it: cli: [NAME] in the manifest", problem=True)
        )  # fmt: skip

    def _state_name(self) -> str:
        project = self._services.project
        if project is None or not is_project_code(self._candidate):
            return self.plugin_id
        import hashlib

        return f"{self.plugin_id}@{hashlib.sha256(os.fsencode(project.resolve())).hexdigest()[:12]}"

    def _open(self, what: str) -> None:
        self._ledger.require_open(what)
        self._ledger.offered += 1

    def _offer(self, kind: OfferKind, name: str, value: Any, description: str = "", args_hint: str = "") -> bool:
        held = self._offers.add(Offer(kind, name, self._ledger.owner, value, description, args_hint))
        if held is not None:
            what = "command of the command line" if kind == "cli" else kind
            self._reject(f"{kind}:{name}", f"the {what} {name!r} belongs to plugin {held.owner.id!r}")
        return held is None

    def _reject(self, subject: str, reason: str, fix: str | None = None) -> None:
        fix = fix or f"mibyan plugins disable {self.plugin_id}"
        decision = Decision("rejected", subject, reason, self.plugin_id, self._candidate.origin, fix, problem=True)
        if self._services.log.add(decision):
            self.logger.error("Plugin %r: registration REJECTED: %s", self.plugin_id, reason)

    def __repr__(self) -> str:
        return f"<PluginContext of {self.plugin_id!r}>"


def is_observer(manifest: Manifest | None) -> bool:
    """Whether a plugin's failing hooks leave calls alone (`on_error: allow`, dispatch.H2)."""
    return manifest is not None and (manifest.on_error == "allow" or manifest.role == "observer")


def _text(value: object, method: str, what: str) -> str:
    """A name as plain text: one of a subclass could be equal to whatever it likes."""
    text = plain_text(value) if isinstance(value, str) else ""
    if not text.strip():
        raise TypeError(f"{method}: {what} must be a non-empty text, not {value!r}.")
    return text


def _names(value: Iterable[str], what: str) -> tuple[str, ...]:
    if isinstance(value, str):
        raise TypeError(f"register_toolset: {what} must be a list of names, not one text.")
    names = tuple(value)
    if not all(isinstance(name, str) for name in names):
        raise TypeError(f"register_toolset: {what} must be a list of names.")
    plain = [plain_text(name) for name in names]
    return tuple(sorted(plain) if isinstance(value, set | frozenset) else plain)  # the same in each process
