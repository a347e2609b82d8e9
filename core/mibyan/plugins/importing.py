"""The code of a plugin: imported once it is needed, asked for what its manifest names, taken away when it is unloaded."""

from __future__ import annotations

import importlib
import os
import re
import sys
from functools import cache
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from mibyan.errors import PluginError
from mibyan.plugins.private import FINDER, PREFIX, PrivatePackage
from mibyan.plugins.process_state import remove_module
from mibyan.plugins.sources.ids import module_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import ModuleType

    from mibyan.plugins.candidate import Candidate, Target

#: Numbers for the private packages of each loader in this process.
_NUMBERS = count(1)


def new_number() -> int:
    """A number that no other loader of this process has."""
    return next(_NUMBERS)


class PluginCode(Protocol):
    """A plugin's code."""

    @property
    def name(self) -> str:
        """The name of its main module."""

    def import_main(self) -> object:
        """Import it; the plugin's module, or the object that its entry point names."""

    def import_named(self, name: str) -> ModuleType:
        """Import the module that its manifest calls `name`."""

    def called(self, name: str) -> str:
        """What its manifest calls the module `name`: the inverse of `import_named`."""

    def belongs(self, name: str, module: object) -> bool:
        """Whether an imported module is the plugin's own."""

    def forget(self) -> None:
        """Take its modules out of the process, if they are this runtime's alone."""


class InstalledCode:
    """Modules that the import system finds: of wheels, of `plugins.modules`, built in.

    Args:
        value: `module` or `module:attribute`.
        root: The plugin's own folder, if it has one.
    """

    def __init__(self, value: str, root: Path | None) -> None:
        self.name, _, self._attribute = value.partition(":")
        self._folder = _folder(root)

    def import_main(self) -> object:
        """The module, or the object that the entry point names."""
        module = importlib.import_module(self.name)
        return attribute(module, self._attribute) if self._attribute else module

    def import_named(self, name: str) -> ModuleType:
        """Import a module by its dotted name; leading dots are relative to the plugin's package."""
        if not name.startswith("."):
            return importlib.import_module(name)
        main = sys.modules[self.name]
        package = self.name if hasattr(main, "__path__") else self.name.rpartition(".")[0]
        return importlib.import_module(name, package)

    def called(self, name: str) -> str:
        """The name itself: it is found by that in each process."""
        return name

    def belongs(self, name: str, module: object) -> bool:
        """Whether a module is the entry point's, above or below it, or lies in the plugin's folder."""
        related = f"{name}.".startswith(f"{self.name}.") or self.name.startswith(f"{name}.")
        return related or _lies_in(module, self._folder)

    def forget(self) -> None:
        """Nothing: what is installed is imported once in a process, and other runtimes may use it."""


class PrivateCode:
    """Modules in a private package: of folder plugins and tools directories.

    Args:
        package: The private package.
        root: The plugin's folder; for a tools directory that directory.
        own_names: What the manifest may call the main module.
    """

    def __init__(self, package: PrivatePackage, root: Path | None, own_names: frozenset[str]) -> None:
        self._package = package
        self._folder = _folder(root)
        self._own_names = own_names

    @property
    def name(self) -> str:
        """The name of its main module."""
        return self._package.main

    def import_main(self) -> object:
        """The plugin's module."""
        return self._package.import_main()

    def import_named(self, name: str) -> ModuleType:
        """Import one of the plugin's modules by its name in the folder, with or without leading dots; else any module."""
        if name.startswith("."):
            return importlib.import_module(name, self._package.base)
        if self._has(name):
            return importlib.import_module(f"{self._package.base}.{name}")
        first, _, rest = name.partition(".")
        if first in self._own_names:
            return importlib.import_module(f".{rest}", self._package.base) if rest else sys.modules[self.name]
        return importlib.import_module(name)

    def called(self, name: str) -> str:
        """The plugin's id for its main package, a relative name for what lies in it: the private one is another each time."""
        base = self._package.base
        if name == base:
            return next(own for own in sorted(self._own_names) if own.isidentifier())
        return name.removeprefix(base) if name.startswith(f"{base}.") else name

    def belongs(self, name: str, module: object) -> bool:
        """Whether a module is in the private package, or lies in the plugin's folder under whatever name."""
        return self._package.holds(name) if name.startswith(PREFIX) else _lies_in(module, self._folder)

    def forget(self) -> None:
        """Take the private package, and what else of the folder was imported, out of the process."""
        self._package.forget()
        real = cache(os.path.realpath)  # most modules lie in the same few folders
        for name, module in sys.modules.copy().items():
            if self._package.holds(name) if name.startswith(PREFIX) else _lies_in(module, self._folder, real):
                remove_module(name, module)

    def _has(self, name: str) -> bool:
        from importlib.util import find_spec

        try:
            return find_spec(f"{self._package.base}.{name}") is not None
        except ImportError:
            return False


def code_of(candidate: Candidate, number: int, sources: Mapping[str, bytes] | None = None) -> PluginCode:
    """The code of a candidate; nothing is imported yet.

    Args:
        candidate: It has a target.
        number: The loader's number.
        sources: For project code the bytes that were hashed, by path below the candidate's root.
    """
    target = candidate.target
    if target is None:
        raise PluginError(
            f"plugin {candidate.id!r} has nothing to import", plugin_id=candidate.id, origin=candidate.origin
        )
    if target.kind in {"module", "entry_point"}:
        return InstalledCode(target.value, candidate.root)
    FINDER.install()
    package = _private_package(candidate, target, number, sources)
    return PrivateCode(package, candidate.root, frozenset({candidate.id, module_name(candidate.id), _stem(target)}))


def attribute(module: ModuleType, dotted: str) -> Any:
    """The object that `dotted` names in `module`.

    Raises:
        PluginError: There is none.
    """
    found: Any = module
    for name in dotted.split("."):
        try:
            found = getattr(found, name)
        except AttributeError:
            place = getattr(module, "__file__", None)
            raise PluginError(f"the module {module.__name__!r} has no {dotted!r}", origin=place) from None
    return found


def _private_package(
    candidate: Candidate, target: Target, number: int, sources: Mapping[str, bytes] | None
) -> PrivatePackage:
    name = f"{PREFIX}{number}_{module_name(candidate.id)}"
    path = Path(target.value)
    root = str(candidate.root or path.parent)
    sealed = None if sources is None else {os.path.join(root, *file.split("/")): data for file, data in sources.items()}  # noqa: PTH118 - text
    if target.kind == "package_dir":
        main = f"{name}.{module_name(candidate.id)}"
        return PrivatePackage(name, main, str(path / "__init__.py"), is_package=True, sources=sealed)
    # A file's neighbours are importable; `<package>/tool.py` of a tools directory lies one level deeper.
    inner = path.relative_to(root).with_suffix("").parts if path.is_relative_to(root) else (path.stem,)
    if any("." in part for part in inner):
        inner = (re.sub(r"\W", "_", path.stem),)
    main = ".".join((name, *inner))
    return PrivatePackage(name, main, str(path), path=(root,), sources=sealed)


def _stem(target: Target) -> str:
    path = Path(target.value)
    return path.stem if target.kind == "file" else path.name


def _folder(root: Path | None) -> str | None:
    return None if root is None else os.path.join(os.path.realpath(root), "")  # noqa: PTH118 - text, with a separator


def _lies_in(module: object, folder: str | None, real: Callable[[str], str] = os.path.realpath) -> bool:
    """Whether a module's file lies in the folder; never raises, whatever stands in `sys.modules`."""
    try:
        file = vars(module).get("__file__")
    except TypeError:
        return False
    if folder is None or not isinstance(file, str):
        return False
    if os.path.islink(file):  # noqa: PTH114 - text
        return os.path.realpath(file).startswith(folder)
    return os.path.join(real(os.path.dirname(file)), "").startswith(folder)  # noqa: PTH118, PTH120 - text
