"""Reading the configuration: the home's file, what code overrides, and what a project takes away."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mibyan.config import project as project_file
from mibyan.config.checks import cross_check
from mibyan.config.kept import KeptLayers
from mibyan.config.keys import join_key, split_key, value_at
from mibyan.config.layers import Layer, merged, override_layer, places
from mibyan.config.problems import InvalidConfigError, Problem
from mibyan.config.section import all_keys
from mibyan.config.settings import Settings, settings_from_data
from mibyan.errors import ConfigError
from mibyan.paths import PROJECT_FOLDER
from mibyan.records import field, record, replace
from mibyan.schema.frozen import FrozenDict
from mibyan.text import suggest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mibyan.config.keys import KeyPath
    from mibyan.config.sources import ShellHook

#: The name of the file, in the home and in a project's `.mibyan`.
FILE_NAME = "config.yaml"

_HINT = "Mend what is listed; `mibyan config validate` checks it again."


@record
class LoadedConfig:
    """The settings of a runtime, and where each was written."""

    settings: Settings
    #: The profile's folder.
    home: Path
    #: The home's config.yaml; it may not exist.
    path: Path
    #: The project's config.yaml; `None` without a project or without that file.
    project_path: Path | None = None
    #: Where each key is that somebody has written, sections included, by its name as `join_key` gives it:
    #: `config.yaml:12`, `.mibyan/config.yaml:3`, `Runtime(config=...)`.
    lines: Mapping[str, str] = field(default_factory=FrozenDict)
    #: The project's shell hooks by event: inert, until `with_project_hooks`.
    project_hooks: Mapping[Any, tuple[ShellHook, ...]] = field(default_factory=FrozenDict)

    @property
    def written(self) -> frozenset[str]:
        """The keys that somebody has written, sections included."""
        return frozenset(self.lines)

    def is_written(self, key: str | Sequence[str | int]) -> bool:
        """Whether somebody has written this key, with whatever value."""
        return join_key(split_key(key)) in self.lines

    def where(self, key: str | Sequence[str | int]) -> str:
        """`config.yaml:12` for a key that is written, or for what is nearest above it; else `config.yaml`."""
        path = split_key(key)
        places = (self.lines.get(join_key(path[:depth])) for depth in range(len(path), 0, -1))
        return next((place for place in places if place), FILE_NAME)

    def line_of(self, key: str | Sequence[str | int]) -> str | None:
        """The line that says `key`, as a whole path, with the key: `/home/me/.mibyan/config.yaml:12: dispatch.timeout`.

        Returns:
            `None` if nobody has written it.
        """
        path = split_key(key)
        place = self.lines.get(join_key(path))
        if place is None:
            return None
        file, colon, line = place.rpartition(":")
        known = {FILE_NAME: self.path, project_file.LABEL: self.project_path}.get(file)
        return f"{place if known is None else f'{known}{colon}{line}'}: {join_key(path)}"

    def value(self, key: str | Sequence[str | int]) -> Any:
        """The value that counts at a key, written or default, in JSON types.

        Raises:
            ConfigError: There is no such key.
        """
        path = split_key(key)
        try:
            return value_at(self.settings.to_data(), path)
        except LookupError:
            raise _unknown(path) from None

    def resolve(self, path: str) -> Path:
        """A path in the home's config.yaml as an absolute one: relative to the file's folder, `~` is the user's home."""
        return Path(os.path.abspath(self.path.parent / Path(path).expanduser()))  # noqa: PTH100 - links stay as they are

    def with_project_hooks(self) -> LoadedConfig:
        """The configuration with the project's shell hooks behind the operator's: for a project that is trusted."""
        hooks = dict(self.settings.to_data()["hooks"])
        for event, added in self.project_hooks.items():
            hooks[event] = [*hooks.get(event, []), *(hook.to_data() for hook in added)]
        settings = settings_from_data({**self.settings.to_data(), "hooks": hooks})
        return replace(self, settings=settings, project_hooks=FrozenDict())


def load_config(home: Path, project: Path | None = None, *, overrides: Mapping[str, Any] | None = None) -> LoadedConfig:
    """The configuration of a runtime.

    Args:
        home: The profile's folder; neither it nor its config.yaml needs to exist.
        project: The folder that holds `.mibyan`, if there is a project.
        overrides: What code says on top of the home's file, key by key.

    Raises:
        ConfigError: Something can't be used; `problems` has every problem with its file and line.
    """
    path, kept = home / FILE_NAME, KeptLayers(home)
    layers = [kept.file_layer(path, FILE_NAME)]
    if overrides is not None:
        layers.append(override_layer(overrides))
    guest = None if project is None else kept.file_layer(project / PROJECT_FOLDER / FILE_NAME, project_file.LABEL)
    kept.save()
    _require_sound([*layers, *([guest] if guest else [])])
    settings = settings_from_data(merged(layers))
    _raise_if(path, cross_check(settings, [layer.document for layer in layers]))
    own = LoadedConfig(settings, home, path, lines=FrozenDict(places(layers)))
    return own if guest is None else _with_project(own, guest)


def default_config(home: Path) -> LoadedConfig:
    """The configuration of a home in which nothing is written: for commands that must run when it is broken."""
    return LoadedConfig(Settings(), home, home / FILE_NAME)


def _require_sound(layers: list[Layer]) -> None:
    """Raise what is wrong with any of the layers."""
    broken = [layer for layer in layers if layer.problems]
    if broken:
        hint = next((layer.hint for layer in broken if layer.hint), None)
        _raise_if(broken[0].origin, [problem for layer in broken for problem in layer.problems], hint)


def _raise_if(origin: Path | str, problems: list[Problem], hint: str | None = None) -> None:
    """Raise the problems, if there are any."""
    if problems:
        raise InvalidConfigError(origin, problems, hint=hint or _HINT)


def _with_project(own: LoadedConfig, guest: Layer) -> LoadedConfig:
    """The operator's configuration, narrowed by a project's."""
    data, problems = project_file.narrow(own.settings, guest.document, guest.data)
    hooks = Settings.from_data({"hooks": guest.data.get("hooks", {})})
    _raise_if(guest.origin, problems + cross_check(hooks, [guest.document]))
    settings = settings_from_data(data)
    lines = FrozenDict(project_file.add_places(own.lines, guest, settings))
    path = Path(guest.origin) if guest.exists else None
    return replace(own, settings=settings, project_path=path, lines=lines, project_hooks=hooks.hooks)


def _unknown(path: KeyPath) -> ConfigError:
    """The error for a key that there isn't."""
    key = join_key(path)
    meant = suggest(key, map(join_key, all_keys(Settings)))
    return ConfigError(f"there is no key '{key}'" + (f" (did you mean '{meant}'?)" if meant else ""))
