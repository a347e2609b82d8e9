"""A fresh virtual environment that is lent Mibyan and what Mibyan needs by the one that runs (plugins.W3)."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sysconfig
import venv
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import TYPE_CHECKING

from mibyan._version import __version__
from mibyan.plugins.sources.builtin import builtin_folder
from mibyan.plugins.sources.ids import canonical
from mibyan.records import record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from packaging.requirements import Requirement

_OWN = "mibyan"


@record
class Environment:
    """A virtual environment."""

    folder: Path
    #: The canonical names of the distributions that are lent to it.
    lent: frozenset[str] = frozenset()

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")

    @property
    def site(self) -> Path:
        """Where its distributions are installed."""
        return Path(sysconfig.get_path("purelib", "venv", {"base": str(self.folder), "platbase": str(self.folder)}))


def make_environment(folder: Path, requirements: Iterable[str], modules: Iterable[str] = ()) -> Environment:
    """Make an environment in which some of what is installed here can be imported, behind what is installed there.

    What is lent are the distributions that the requirements name and all that those require; what isn't installed
    here isn't lent. To an installer they are there.

    Args:
        folder: Where; beside it a folder with what is lent is made.
        requirements: As in PEP 508.
        modules: Names of modules whose distributions are lent too.
    """
    venv.EnvBuilder(with_pip=False, symlinks=os.name != "nt").create(folder)
    lent, lines = folder.with_name(f"{folder.name}-lent"), []
    lent.mkdir()
    names = set()
    for name, found in _closure([*requirements, *_providing(modules)]).items():
        names.add(name)
        if name == _OWN:
            _lend_mibyan(lent, found)
        elif found is not None:
            lines += _lend(found, lent)
    made = Environment(folder, frozenset(names))
    made.site.mkdir(parents=True, exist_ok=True)
    (made.site / "_lent.pth").write_text("\n".join([str(lent), *lines]) + "\n", encoding="utf-8")
    return made


def _closure(requirements: Iterable[str]) -> dict[str, Distribution | None]:
    """The installed distributions that are required, directly or not, by canonical name; Mibyan may be there uninstalled."""
    from packaging.requirements import InvalidRequirement, Requirement

    found: dict[str, Distribution | None] = {}
    seen: set[tuple[str, frozenset[str]]] = set()
    open_: list[Requirement] = []
    for text in requirements:
        try:
            open_.append(Requirement(text))
        except InvalidRequirement:  # a check of its own
            continue
    while open_:
        one = open_.pop()
        name, extras = canonical(one.name), frozenset(one.extras)
        if (name, extras) in seen:
            continue
        seen.add((name, extras))
        there = _installed(one)
        if there is None and name != _OWN:
            continue
        found[name] = there
        open_ += [further for further in _required(there, name) if _applies(further, extras)]
    return found


def _installed(requirement: Requirement) -> Distribution | None:
    """The distribution that meets a requirement; of Mibyan the one that runs, whatever its version."""
    try:
        there = distribution(requirement.name)
        fits = requirement.specifier.contains(there.version, prereleases=True)
    except (PackageNotFoundError, ValueError, TypeError):
        return None
    return there if fits or canonical(requirement.name) == _OWN else None


def _required(there: Distribution | None, name: str) -> Iterator[Requirement]:
    from packaging.requirements import InvalidRequirement, Requirement

    from mibyan.cli.doctor.installation import BASE

    for text in (there.requires or ()) if there is not None else BASE if name == _OWN else ():
        try:
            yield Requirement(text)
        except InvalidRequirement:
            continue


def _applies(requirement: Requirement, extras: frozenset[str]) -> bool:
    marker = requirement.marker
    return marker is None or any(marker.evaluate({"extra": extra}) for extra in (extras or {""}) | {""})


def _providing(modules: Iterable[str]) -> list[str]:
    """The distributions that have some modules."""
    tops = {name.partition(".")[0] for name in modules}
    if not tops:
        return []
    from importlib.metadata import packages_distributions

    by_module = packages_distributions()
    return sorted({name for top in tops for name in by_module.get(top, ())})


# Lending ----------------------------------------------------------------------------------------------------------


def _lend_mibyan(lent: Path, found: Distribution | None) -> None:
    """Mibyan as it runs, from wherever, and as a distribution."""
    _link(Path(__file__).parents[2], lent / _OWN)
    builtin = builtin_folder()
    if builtin is not None:
        _link(builtin, lent / builtin.name)
    info = lent / f"{_OWN}-{__version__}.dist-info"
    info.mkdir()
    requires = [f"Requires-Dist: {text}\n" for text in (found.requires or ()) if found is not None] if found else []
    extras = [f"Provides-Extra: {text}\n" for text in found.metadata.get_all("Provides-Extra") or ()] if found else []
    head = f"Metadata-Version: 2.1\nName: {_OWN}\nVersion: {__version__}\n"
    (info / "METADATA").write_text(head + "".join([*requires, *extras]), encoding="utf-8")
    (info / "INSTALLER").write_text("mibyan\n", encoding="utf-8")


def _lend(found: Distribution, lent: Path) -> list[str]:
    """Link a distribution's files; the folders that have to be on the path besides, of editable installs."""
    lines: list[str] = []
    files = found.files
    if files is None:
        names = set((found.read_text("top_level.txt") or canonical(found.name).replace("-", "_")).split())
        for name in names:
            _link_module(name, lent)
        info = getattr(found, "_path", None)
        if isinstance(info, Path) and info.exists():
            _link(info, lent / info.name)
        return lines
    tops = {file.parts[0] for file in files if file.parts and file.parts[0] not in {"..", "/", "__pycache__"}}
    for top in sorted(tops):
        path = Path(str(found.locate_file(top)))
        if path.suffix == ".pth":
            lines += _lines_of(path)
        elif path.exists():
            _link(path, lent / top)
    return lines


def _lines_of(path: Path) -> list[str]:
    """The folders that a `.pth` names."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    return [line for line in map(str.strip, lines) if line and not line.startswith(("#", "import ", "import\t")) and Path(line).is_dir()]  # fmt: skip


def _link_module(name: str, lent: Path) -> None:
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return
    if spec is None or spec.origin is None:
        return
    path = Path(spec.origin)
    path = path.parent if path.stem == "__init__" else path
    _link(path, lent / path.name)


def _link(source: Path, target: Path) -> None:
    """A link to what is lent; a copy, where links can't be made."""
    if target.is_symlink() or target.exists():
        return  # a namespace package of several distributions: the first has it
    try:
        target.symlink_to(source, target_is_directory=source.is_dir())
    except OSError:
        (shutil.copytree if source.is_dir() else shutil.copy2)(source, target)
