"""The template of a plugin's project: where it is, what it asks for, and the project that it makes (plugins.W1)."""

from __future__ import annotations

import json
import os
import shutil
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from mibyan.errors import MibyanError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

#: Where the wheel has it, beside the package's modules; and where a checkout does.
_IN_WHEEL: Final = "_plugin_template"
_IN_CHECKOUT: Final = ("examples", "plugin-template")
_DATA: Final = "cookiecutter.json"


def template_folder() -> Path:
    """The cookiecutter template: the wheel's, or `examples/plugin-template` in a checkout.

    Raises:
        MibyanError: It isn't there.
    """
    package = Path(__file__).parents[2]
    places = (package / _IN_WHEEL, package.parents[1].joinpath(*_IN_CHECKOUT))
    found = next((place for place in places if (place / _DATA).is_file()), None)
    if found is None:
        raise MibyanError(
            "the template of plugins isn't there", origin=str(places[0]),
            hint="Mibyan's own files are damaged: install it again.",
        )  # fmt: skip
    return found


class Template:
    """The template as data.

    Raises:
        MibyanError: It isn't there.
    """

    def __init__(self) -> None:
        self.folder = template_folder()
        self._data: dict[str, Any] = json.loads((self.folder / _DATA).read_text(encoding="utf-8"))
        #: The names of what an author is asked for, in the order of the questions.
        self.fields = tuple(name for name in self._data if not name.startswith("_"))
        #: The question for each.
        self.questions: Mapping[str, str] = self._data["__prompts__"]

    def values(self, given: Mapping[str, str]) -> dict[str, Any]:
        """Everything that the template's files need: the given fields, defaults, and what follows from them.

        What is given is never read as a template itself; cookiecutter's own reading of fields would.
        """
        from cookiecutter.environment import StrictEnvironment
        from cookiecutter.prompt import render_variable

        environment = StrictEnvironment()
        values: dict[str, Any] = {}
        for name, raw in self._data.items():
            if name in given:
                values[name] = given[name]
            elif isinstance(raw, str):
                values[name] = render_variable(environment, raw, values)
            else:
                values[name] = raw
        return values

    def make(self, values: Mapping[str, Any], parent: Path) -> Path:
        """Make the project `parent`/`values["__folder"]`: all of it, or nothing if anything comes between.

        Nothing of the user's cookiecutter counts (its configuration, replays), and no code of the template's runs.

        Raises:
            MibyanError: The folder is there already, or can't be written.
            KeyboardInterrupt: It came meanwhile.
        """
        from cookiecutter.generate import generate_files

        target = parent / str(values["__folder"])
        _require_free(target)
        try:
            with _folders(parent), TemporaryDirectory(prefix=".mibyan-new-", dir=parent) as beside:
                source = _copied(self.folder, Path(beside, "template"))
                context = {"cookiecutter": dict(values)}
                made = generate_files(source, context, Path(beside, "made"), accept_hooks=False)
                _require_free(target)
                Path(made).rename(target)
        except OSError as error:
            why = os.strerror(error.errno).lower() if error.errno else str(error)
            raise MibyanError(f"{target} can't be made: {why}", origin=str(target)) from error
        return target


def _copied(template: Path, to: Path) -> Path:
    """The template's files as if they were new: without their modes, and without the byte code that an installer has made."""
    for path in (template, *sorted(template.rglob("*"))):
        inner = path.relative_to(template)
        if "__pycache__" in inner.parts or path.suffix == ".pyc":
            continue
        if path.is_dir():
            (to / inner).mkdir()
        else:
            shutil.copyfile(path, to / inner)
    return to


def _require_free(target: Path) -> None:
    if os.path.lexists(target):
        raise MibyanError(
            f"{target} is there already; nothing was written", origin=str(target), hint="Choose another name or folder."
        )


@contextmanager
def _folders(path: Path) -> Iterator[None]:
    """Make a folder and those above it; those that weren't there go again if the body fails."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        with suppress(OSError):
            for folder in missing:
                folder.rmdir()
        raise
