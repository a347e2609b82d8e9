"""`Invocation`: one run of the command line, with what its options said and what commands need made of it."""

from __future__ import annotations

import os
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from mibyan.cli.options import Options
from mibyan.cli.output import Output, say
from mibyan.errors import ConfigError, MibyanError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mibyan.cli.footprint import Noting
    from mibyan.cli.tracefile import TraceFile
    from mibyan.config.load import LoadedConfig
    from mibyan.plugins.foreseen import Foreseen
    from mibyan.plugins.state import PluginRecord
    from mibyan.runtime import Runtime


class Invocation:
    """One run of the command line."""

    def __init__(self) -> None:
        self.options = Options()
        self.out = Output()
        #: Set where the command's answer may be kept.
        self.noting: Noting | None = None

    def trace(self) -> TraceFile | None:
        """The file of `--trace`, if it was given.

        Raises:
            MibyanError: It can't be written.
        """
        if self.options.trace is None:
            return None
        from mibyan.cli.tracefile import TraceFile

        return TraceFile(self.options.trace)

    # Where -------------------------------------------------------------------------------------------------------

    @cached_property
    def home(self) -> Path:
        """The profile's folder.

        Raises:
            MibyanError: It can't be told where that is.
        """
        from mibyan.paths import mibyan_home

        return mibyan_home(self.options.home)

    @cached_property
    def project(self) -> Path | None:
        """The project: the folder of `--project`, else the nearest one at or above the working directory.

        Raises:
            MibyanError: `--project` isn't a project's folder.
        """
        from mibyan.paths import find_project

        if self.options.project is not None:
            return self._named_project(self.options.project)
        try:
            return find_project(Path.cwd(), self.home)
        except OSError:  # The working directory has been removed.
            return None

    def _named_project(self, name: str) -> Path:
        from mibyan.paths import PROJECT_FOLDER

        folder = Path(os.path.abspath(Path(name).expanduser()))  # noqa: PTH100 - links stay as they are written
        if not folder.is_dir():
            raise MibyanError(f"--project: {folder} isn't a folder", hint="Give the folder that holds .mibyan/.")
        own = folder / PROJECT_FOLDER
        if os.path.realpath(own) == os.path.realpath(self.home):
            raise MibyanError(f"--project: {own} is the home, not a project's folder", hint="Leave --project out.")
        return folder

    # What --------------------------------------------------------------------------------------------------------

    @cached_property
    def config(self) -> LoadedConfig:
        """The configuration.

        Raises:
            ConfigError: It can't be used.
        """
        from mibyan.config.load import load_config

        return load_config(self.home, self.project)

    def config_or_defaults(self) -> tuple[LoadedConfig, ConfigError | None]:
        """The configuration; if it can't be used the defaults and what is wrong, which is said on standard error.

        For the commands that must work then: they go on with plugins off (plugins.L6, L8).
        """
        try:
            return self.config, None
        except ConfigError as error:
            from mibyan.config.load import default_config

            say(f"mibyan: error: {error}")
            say("mibyan: warning: going on with the defaults, and with plugins off, until that is mended")
            return default_config(self.home), error

    def glance(self, config: LoadedConfig) -> tuple[PluginRecord, ...]:
        """The plugins as the options and a configuration say, without a runtime; nothing is imported."""
        from mibyan.paths import is_set
        from mibyan.plugins.glance import glance

        options = self.options
        also = (*options.plugins, *os.environ.get("MIBYAN_PLUGINS", "").replace(",", " ").split())
        safe_mode = options.safe_mode or is_set("MIBYAN_SAFE_MODE")
        return glance(config, self.home, self.project, safe_mode=safe_mode, also=also, no=options.no_plugins)[0]

    @cached_property
    def foreseen(self) -> Foreseen:
        """The commands of plugins, told without importing any.

        Raises:
            ConfigError: The configuration can't be used.
        """
        from mibyan.plugins.foreseen import foresee, lessons_of

        return foresee(self.glance(self.config), lessons_of(self.config, self.home))

    def lock_problem(self) -> ConfigError | None:
        """Why a runtime can't be held to `mibyan.lock`, which is said on standard error; `None`: it can, or needn't be.

        For the commands that must work then: they go on with plugins off (plugins.L8).
        """
        from mibyan.paths import is_set

        if not self.options.locked and not is_set("MIBYAN_LOCKED"):
            return None
        from mibyan.plugins.locking import require_lock

        try:
            require_lock(self.home)
        except ConfigError as error:
            say(f"mibyan: error: {error}")
            return error
        return None

    @contextmanager
    def runtime(self, config: LoadedConfig | None = None, *, locked: bool | None = None) -> Iterator[Runtime]:
        """A runtime as the options and the configuration say; plugins are found and loaded when it is first used.

        Args:
            config: The configuration, if it has been read already.
            locked: Whether it is held to `mibyan.lock`; `None`: as `--locked` and `MIBYAN_LOCKED` say.

        Raises:
            ConfigError: The configuration, or the lock, can't be used.
        """
        from mibyan.cli import logs
        from mibyan.runtime import Runtime

        options = self.options
        with logs.shown(debug=options.debug):
            runtime = Runtime(
                self.home, self.project, self.config if config is None else config, options.safe_mode,
                plugins=options.plugins, no_plugins=options.no_plugins,
                locked=(options.locked or None) if locked is None else locked,
            )  # fmt: skip
            with runtime:
                yield runtime
                if self.noting is not None:
                    self.noting.look(runtime)
