"""`Examination`: one plugin is looked at, built, installed and tried, in scratch folders that are gone afterwards (plugins.W3)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from mibyan.cli.checking.archives import ArchiveError, unpack
from mibyan.cli.checking.checks import DYNAMIC, STATIC
from mibyan.cli.checking.copying import copy_tree
from mibyan.cli.checking.environment import make_environment
from mibyan.cli.checking.installing import BuildError, Workshop
from mibyan.cli.checking.judging import judge, judge_built
from mibyan.cli.checking.probing import Trial
from mibyan.cli.checking.reading import folder_facts, is_meant_as_plugin, project_facts, wheel_facts
from mibyan.cli.checking.truth import judge_frozen
from mibyan.errors import MibyanError
from mibyan.plugins.defaults import defaults_of
from mibyan.plugins.sources.authored import NotAPluginError
from mibyan.plugins.sources.authored import read as read_data
from mibyan.plugins.sources.manifests import FOLDER_MANIFEST
from mibyan.records import field, record
from mibyan.text import describe_exception

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mibyan.cli.checking.checks import Checklist
    from mibyan.cli.checking.environment import Environment
    from mibyan.cli.checking.facts import Facts

Kind: TypeAlias = Literal["folder", "project", "sdist", "wheel"]

#: What has to be right before code is run: it would fail for the same reason once more.
_BEFORE: Final = ("archive", "project", "wheel.metadata", "entry-point", "id", "manifest", "syntax")
_OF_WHEELS: Final = ("archive", "wheel.metadata", "wheel.record")
_LOOKED_FOR = "a folder with a plugin.yaml, a project whose pyproject.toml has an entry point in mibyan.plugins, an sdist (.tar.gz) or a wheel (.whl)"


@record
class Wishes:
    """How a plugin is to be checked."""

    #: Whether none of its code is run.
    static: bool = False
    #: Whether no index is asked.
    offline: bool = False
    #: Seconds for each step.
    timeout: float = 60.0
    #: The plugin's own settings, beside their defaults.
    settings: Mapping[str, Any] = field(default_factory=dict)
    #: Is told what is being done.
    tell: Callable[[str], object] = str


def recognise(path: Path) -> Kind:
    """What is at a path.

    Raises:
        NotAPluginError: No plugin is; the message says what was looked for.
    """
    if path.is_file():
        if path.suffix == ".whl":
            return "wheel"
        if path.name.endswith(".tar.gz"):
            return "sdist"
        raise NotAPluginError(
            f"{path} isn't a plugin; looked for {_LOOKED_FOR}",
            hint=f"For a file of a plugin name its folder: {path.parent}",
        )
    if not path.is_dir():
        what = "isn't there" if not path.exists() and not path.is_symlink() else "is neither a file nor a folder"
        raise NotAPluginError(f"{path} {what}; looked for {_LOOKED_FOR}")
    if (path / "pyproject.toml").is_file() and is_meant_as_plugin(path):
        return "project"
    if (path / FOLDER_MANIFEST).is_file():
        return "folder"
    raise NotAPluginError(f"{path} isn't a plugin; looked for {_LOOKED_FOR}",
                          hint=f"Write a {FOLDER_MANIFEST} with at least `id: {path.name}`, or mibyan plugins new.")  # fmt: skip


class Examination:
    """One plugin is examined.

    Args:
        path: Where it is, as it was named.
        folder: An empty folder for scratch files, which somebody else removes.
        found: Takes what comes of it.
        wishes: How.
    """

    def __init__(self, path: Path, folder: Path, found: Checklist, wishes: Wishes) -> None:
        self._path = path
        self._place = Path(os.path.abspath(path))  # noqa: PTH100 - links stay: the id is the name that was given
        self._folder = folder
        self._found = found
        self._wishes = wishes
        #: The plugin's id, as far as it is known.
        self.plugin_id = ""

    def run(self, kind: Kind) -> None:
        """Do it."""
        if kind == "folder":
            self._folder_plugin()
        elif kind == "project":
            self._project(self._place, keep=True)
        else:
            self._archive(kind)
        self._found.skip(STATIC, "there is nothing to look at")
        self._found.skip(DYNAMIC, self._why_not())

    def _why_not(self) -> str:
        """Why its code wasn't run."""
        if self._wishes.static:
            return "--static runs no code"
        failed = [check_id for check_id in (*_BEFORE, "build", "install", "load") if self._found.has_failed(check_id)]
        return f"{', '.join(failed)} must be mended first" if failed else "there is nothing to run"

    def _may_run(self) -> bool:
        return not self._wishes.static and not any(self._found.has_failed(check_id) for check_id in _BEFORE)

    def _folder_plugin(self) -> None:
        self._found.skip([*_OF_WHEELS, "project"], "it is a folder")
        self._found.skip(["build", "install"], "a folder is neither built nor installed")
        facts = folder_facts(self._place)
        self._judged(facts)
        if self._may_run():
            environment = make_environment(self._folder / "env", ["mibyan"], _modules(self._data(facts)))
            trial = self._trial(facts, environment)
            target = trial.home / "plugins" / facts.root.name
            copy_tree(facts.root, target)
            trial.place(target, str(self._path))
            self._tried(trial, facts, environment)

    def _project(self, root: Path, *, keep: bool) -> None:
        self._found.skip(["archive"], "it is a project")
        facts = project_facts(root, self._found, "" if keep else "PROJECT")
        if facts is None:
            return
        self._judged(facts)
        if not self._may_run():
            self._found.skip(_OF_WHEELS, "no wheel was built")
            return
        shop = Workshop(self._folder, self._wishes.timeout, self._wishes.offline)
        self._wishes.tell("building it")
        try:
            wheel = shop.build(root, _toml(root), keep=keep)
            unpacked = self._unpacked(wheel, "built")
        except MibyanError as error:
            self._found.fail("build", error.message, error.hint)
            self._found.skip(_OF_WHEELS, "no wheel was built")
            return
        self._found.ok("build", wheel.name)
        built = wheel_facts(unpacked, wheel, self._found)
        if built is not None:
            judge_built(built, self._found, facts)
            self.plugin_id = built.id
        if built is not None and self._may_run():
            self._installed(shop, wheel, built, facts)

    def _archive(self, kind: Kind) -> None:
        try:
            unpacked = self._unpacked(self._path, kind)
        except ArchiveError as error:
            self._found.fail("archive", error.message, error.hint, str(self._path))
            return
        self._found.ok("archive", f"{self._path.name} can be unpacked without harm")
        if kind == "sdist":
            self._sdist(unpacked)
            return
        self._found.skip(["project", "build"], "it is a wheel")
        facts = wheel_facts(unpacked, self._path, self._found)
        if facts is None:
            return
        self._judged(facts)
        if self._may_run():
            shop = Workshop(self._folder, self._wishes.timeout, self._wishes.offline)
            self._installed(shop, self._place, facts, facts)

    def _sdist(self, unpacked: Path) -> None:
        roots = [path for path in unpacked.iterdir() if path.is_dir()]
        if len(roots) != 1 or not (roots[0] / "pyproject.toml").is_file():
            self._found.fail("project", "an sdist has one folder with a pyproject.toml, this hasn't", "python -m build --sdist", str(self._path))  # fmt: skip
            return
        self._project(roots[0], keep=False)

    def _unpacked(self, archive: Path, name: str) -> Path:
        target = self._folder / name
        target.mkdir()
        self._found.call(f"{target}/", f"{archive.name}: ")
        unpack(archive, target)
        return target

    def _judged(self, facts: Facts) -> None:
        self.plugin_id = facts.id
        judge(facts, self._found)

    def _installed(self, shop: Workshop, wheel: Path, facts: Facts, source: Facts) -> None:
        """Install a wheel and try it."""
        environment = make_environment(self._folder / "env", ["mibyan", *_of_mibyan(facts.requires)])
        self._wishes.tell("installing it")
        try:
            shop.install(wheel, environment)
        except BuildError as error:
            self._found.fail("install", error.message, error.hint)
            return
        self._found.ok("install", f"{wheel.name} is installed with what it requires")
        trial = self._trial(facts, environment)
        for top in facts.tops:
            for there in (environment.site / top, environment.site / f"{top}.py"):
                if there.exists():
                    trial.place(there, _shown(source, there.name))
        self._tried(trial, facts, environment)

    def _trial(self, facts: Facts, environment: Environment) -> Trial:
        folder = self._folder / "trial"
        folder.mkdir()
        settings = {**defaults_of(self._data(facts).get("config_schema")), **self._wishes.settings}
        return Trial(facts.id, environment, folder, settings, distribution=facts.form == "wheel")

    def _tried(self, trial: Trial, facts: Facts, environment: Environment) -> None:
        self._wishes.tell("loading it")
        if trial.run(self._found, self._wishes.timeout):
            mend = f"mibyan plugins manifest {'PROJECT' if self._path.is_file() else self._path} --write"
            judge_frozen(facts, environment, self._found, self._wishes, mend)

    @staticmethod
    def _data(facts: Facts) -> dict[str, Any]:
        """What the manifest says; it is valid, or there is none."""
        return {} if facts.manifest is None else read_data(facts.manifest)[0]


def _modules(data: Mapping[str, Any]) -> list[str]:
    """The modules that a manifest requires of the environment, for the plugin or for a tool."""
    asked = [data.get("requires") or {}, *((tool.get("requires") or {}) for tool in data.get("tools") or ())]
    return [name for one in asked for name in one.get("modules") or ()]


def _of_mibyan(requires: tuple[str, ...]) -> list[str]:
    """What a distribution requires of Mibyan: its extras are lent too."""
    return [
        text
        for text in requires
        if text.lower().startswith("mibyan") and not text.lower().startswith(("mibyan-", "mibyan_", "mibyan."))
    ]


def _toml(root: Path) -> dict[str, Any]:
    import tomllib

    with (root / "pyproject.toml").open("rb") as file:
        return tomllib.load(file)


def _shown(source: Facts, name: str) -> str:
    """Where a module of a project lies, as far as it can be told; else its name."""
    if source.form != "project":
        return name
    found = next((path for base in (source.root / "src", source.root) if (path := base / name).exists()), None)
    return name if found is None else str(found)


def examined(path: Path, folder: Path, found: Checklist, wishes: Wishes) -> str:
    """Examine a plugin; its id.

    Raises:
        NotAPluginError: There is none.
    """
    kind = recognise(path)
    examination = Examination(path, folder, found, wishes)
    try:
        examination.run(kind)
    except Exception as error:  # a stranger's files may be anything
        found.fail("load", f"the check itself came to an end: {describe_exception(error)}", "mibyan doctor")
        found.skip([*STATIC, *DYNAMIC], "the check itself came to an end")
    return examination.plugin_id
