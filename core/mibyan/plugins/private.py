"""Private packages: where the modules of plugins live that aren't installed (plugins.L5).

Each such plugin gets a package of its own, `mibyan_private_<number>_<plugin>`, whose number belongs to one runtime. So
relative imports, sub-packages and data files work, nothing is put on `sys.path`, two plugins (or two runtimes) never
share a module, and unloading one takes all its modules away. A file of a tools directory gets one too: `from . import
helper` finds the file's neighbour, as a module of the plugin's own.

Trusted project code is compiled from the bytes that were hashed: neither sources nor bytecode are read from the disk
(plugins.S1).
"""
# Paths are text here, as in the import system.
# ruff: noqa: PTH116, PTH118, PTH120

from __future__ import annotations

import importlib
import os
import sys
import time
from contextlib import suppress
from importlib.machinery import (
    BYTECODE_SUFFIXES,
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    ModuleSpec,
    SourceFileLoader,
    SourcelessFileLoader,
)
from typing import TYPE_CHECKING, Any

from mibyan.plugins.process_state import remove_module
from mibyan.records import record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import ModuleType

#: What the names of all private packages begin with.
PREFIX = "mibyan_private_"

#: Seconds that a source must be old before its bytecode is kept: Python compares whole seconds and the size.
_SETTLED = 2.0


class FreshLoader(SourceFileLoader):
    """Loads a source; bytecode of one that has just been written isn't kept, since the next edit could go unnoticed."""

    def set_data(self, path: str, data: Any, *, _mode: int = 0o666) -> None:
        """Write bytecode, unless the source is too new to be told from its next version."""
        with suppress(OSError):
            if time.time() - os.stat(self.path).st_mtime >= _SETTLED:
                super().set_data(path, data, _mode=_mode)


class SealedLoader(SourceFileLoader):
    """Loads a source from the bytes that were hashed; bytecode is neither read nor written."""

    def __init__(self, fullname: str, path: str, source: bytes) -> None:
        super().__init__(fullname, path)
        self._source = source

    def path_stats(self, path: str) -> Mapping[str, Any]:
        """Nothing is known of the file: that is what keeps the import system from its bytecode."""
        raise OSError(f"{path} is read from memory")

    def get_data(self, path: str) -> bytes:
        """The bytes that were hashed; what isn't the source itself is read from the disk."""
        return self._source if path == self.path else super().get_data(path)


@record(frozen=False, eq=False)
class PrivatePackage:
    """The private package of one plugin.

    Args:
        name: Its name, which begins with `PREFIX`.
        main: The full name of the plugin's own module or package, directly below it.
        file: The path of the main module's source (for a package its `__init__.py`).
        is_package: Whether the main module is a package.
        path: The folders in which modules beside the main one are found.
        sources: For trusted project code the bytes of each source by absolute path; nothing else is run.
    """

    name: str
    main: str
    file: str
    is_package: bool = False
    path: tuple[str, ...] = ()
    sources: Mapping[str, bytes] | None = None

    def import_main(self) -> ModuleType:
        """Import the plugin's main module, or give the imported one."""
        FINDER.add(self)
        return importlib.import_module(self.main)

    def forget(self) -> None:
        """Take its modules out of the process."""
        FINDER.remove(self)
        for name, module in sys.modules.copy().items():
            if self.holds(name):
                remove_module(name, module)

    def holds(self, name: str) -> bool:
        """Whether a module of that name belongs to the package."""
        return name == self.name or name.startswith(f"{self.name}.")

    @property
    def base(self) -> str:
        """The package to which the plugin's relative names are relative."""
        return self.main if self.is_package else self.name

    def find(self, fullname: str, path: Sequence[str] | None) -> ModuleSpec | None:
        """The spec of one of its modules; `path` is that of the package it lies in."""
        if fullname == self.name:
            spec = ModuleSpec(fullname, None, is_package=True)
            spec.submodule_search_locations = list(self.path)
            return spec
        if fullname == self.main:
            return self._source_spec(fullname, self.file, is_package=self.is_package)
        for folder in path or ():
            found = self._find_in(folder, fullname)
            if found is not None:
                return found
        if self.sources is not None:
            # The import system would go on looking on the disk, where nothing is trusted.
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
        return None

    def _find_in(self, folder: str, fullname: str) -> ModuleSpec | None:
        if self.sources is None:
            return FileFinder(
                folder, (ExtensionFileLoader, EXTENSION_SUFFIXES), (FreshLoader, SOURCE_SUFFIXES),
                (SourcelessFileLoader, BYTECODE_SUFFIXES),
            ).find_spec(fullname)  # fmt: skip
        base = os.path.join(folder, fullname.rpartition(".")[2])
        for file, is_package in ((os.path.join(base, "__init__.py"), True), (f"{base}.py", False)):
            if file in self.sources:
                return self._source_spec(fullname, file, is_package=is_package)
        if any(file.startswith(base + os.sep) for file in self.sources):
            spec = ModuleSpec(fullname, None, is_package=True)
            spec.submodule_search_locations = [base]
            return spec
        return None

    def _source_spec(self, fullname: str, file: str, *, is_package: bool) -> ModuleSpec:
        if self.sources is None:
            loader: SourceFileLoader = FreshLoader(fullname, file)
        elif file in self.sources:
            loader = SealedLoader(fullname, file, self.sources[file])
        else:
            raise ModuleNotFoundError(f"{file} isn't among the files that were trusted", name=fullname)
        spec = ModuleSpec(fullname, loader, origin=file, is_package=is_package)
        spec.has_location = True
        if is_package:
            spec.submodule_search_locations = [os.path.dirname(file)]
        return spec


class PrivateFinder:
    """The finder for private packages on `sys.meta_path`; it has nothing to say about other modules."""

    def __init__(self) -> None:
        self._packages: dict[str, PrivatePackage] = {}

    def add(self, package: PrivatePackage) -> None:
        """Make the package importable."""
        self._packages[package.name] = package
        self.install()

    def remove(self, package: PrivatePackage) -> None:
        """Make it importable no longer."""
        self._packages.pop(package.name, None)

    def install(self) -> None:
        """See that the finder is asked, before those that look at the disk."""
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,  # noqa: ARG002 - the protocol's
    ) -> ModuleSpec | None:
        """The import system's question."""
        package = self._packages.get(fullname.partition(".")[0])
        return None if package is None else package.find(fullname, path)


#: The one finder of the process; the import system is the process's too.
FINDER = PrivateFinder()
