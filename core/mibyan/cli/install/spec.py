"""What somebody means by the SPEC of `mibyan plugins install`; what could mean something else is refused (plugins.W4)."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from mibyan.cli.exits import UsageError
from mibyan.cli.install.installers import without_secrets
from mibyan.plugins.sources.ids import PREFIX, canonical
from mibyan.records import record
from mibyan.text import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from packaging.requirements import Requirement

    Kind: TypeAlias = Literal["name", "wheel", "sdist", "folder", "url"]

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://\S+")
_ARCHIVES = (".tar.gz", ".tar.bz2", ".tar.xz", ".tgz", ".zip")
#: What isn't a plugin.
_OWN = "mibyan"


@record
class Wanted:
    """What is to be installed."""

    kind: Kind
    #: What the installer is told: a requirement, an absolute path, a URL.
    spec: str
    #: What was understood, in a clause.
    said: str
    #: The canonical name of the distribution, where SPEC has it.
    name: str = ""
    #: The file or folder, where it is at hand.
    path: Path | None = None
    editable: bool = False

    @property
    def words(self) -> list[str]:
        """The words for the installer."""
        return ["-e", self.spec] if self.editable else [self.spec]


def read_spec(spec: str, *, exact: bool = False, installed: Mapping[str, str] | None = None) -> Wanted:
    """What SPEC means.

    Args:
        spec: A name, a requirement, a path, a URL.
        exact: Whether a name is the distribution's own, not the plugin's id.
        installed: The distributions of installed plugins, by the plugins' ids.

    Raises:
        UsageError: It can't be understood, or could be taken for something else.
    """
    _require_plain(spec)
    if _URL.fullmatch(spec):
        return _of_url(spec)
    if _looks_like_path(spec):
        return _of_path(spec)
    return _of_name(spec, exact=exact, installed=installed or {})


def read_editable(path: str) -> Wanted:
    """What `-e PATH` means.

    Raises:
        UsageError: It isn't a project's folder.
    """
    _require_plain(path)
    found = _of_path(path)
    if found.kind != "folder":
        raise UsageError(f"-e takes a project's folder: {one_line(path)} isn't one")
    return Wanted("folder", found.spec, f"{found.said}, where it stays", path=found.path, editable=True)


def read_more(words: Sequence[str]) -> list[str]:
    """The operator's own arguments for the installer; paths of theirs hold wherever it is run.

    Raises:
        UsageError: They don't begin with an option.
    """
    if words and not words[0].startswith("-"):
        raise UsageError(
            f"one SPEC at a time: {one_line(words[0], 60)!r} is another. Arguments for the installer come after `--`."
        )
    return [_lasting(word) for word in words]


def _lasting(word: str) -> str:
    flag, sign, value = word.partition("=") if word.startswith("--") else ("", "", word)
    if not value or value.startswith("-") or "\0" in value or not os.path.exists(value):  # noqa: PTH110 - text
        return word
    return f"{flag}{sign}{os.path.abspath(value)}"  # noqa: PTH100 - text


def _require_plain(spec: str) -> None:
    """Raise unless a text is what it looks like."""
    if not spec.strip():
        raise UsageError("SPEC is empty: name a plugin, a path or a URL")
    if spec.startswith("-"):
        raise UsageError(
            f"SPEC can't begin with a dash: {one_line(spec, 60)!r}. Arguments for the installer come after SPEC and `--`."
        )
    odd = next((character for character in spec if not character.isprintable()), None)
    if odd is not None:
        raise UsageError(f"SPEC has a character that isn't seen (U+{ord(odd):04X}): {one_line(spec, 60)}")
    if spec != spec.strip():
        raise UsageError(f"SPEC begins or ends with a blank: {one_line(spec, 60)!r}")


def _looks_like_path(spec: str) -> bool:
    """As pip takes it: a plain word is a name, even if a folder is called so."""
    # `weather @ https://…` has slashes, and is a requirement.
    if re.match(r"[\w.-]+\s*(\[[^\]]*\])?\s*@\s*\S", spec) and not Path(spec).exists():
        return False
    return os.sep in spec or spec.startswith((".", "~")) or spec.endswith((".whl", *_ARCHIVES))


def _of_path(spec: str) -> Wanted:
    path = Path(os.path.abspath(os.path.expanduser(spec)))  # noqa: PTH100, PTH111 - links stay as they are written
    if path.is_dir():
        return Wanted("folder", str(path), f"the project in {path}", path=path)
    if not path.is_file():
        raise UsageError(f"there is no file or folder {one_line(str(path))}. A repository is written git+https://…")
    if path.suffix == ".whl":
        return Wanted("wheel", str(path), f"the wheel {path}", _wheel_name(path), path)
    if path.name.endswith(_ARCHIVES):
        return Wanted("sdist", str(path), f"the source archive {path}", path=path)
    raise UsageError(f"{one_line(str(path))} is neither a wheel, a source archive nor a project's folder")


def _wheel_name(path: Path) -> str:
    from packaging.utils import InvalidWheelFilename, parse_wheel_filename

    try:
        return str(parse_wheel_filename(path.name)[0])
    except InvalidWheelFilename as error:
        raise UsageError(f"no wheel is called so: {one_line(str(error))}") from None


def _of_url(spec: str) -> Wanted:
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    shown = one_line(without_secrets(spec), 300)
    if not _URL.fullmatch(spec):
        raise UsageError(f"{shown} isn't a URL; a repository is written git+https://… or git+ssh://…")
    try:
        parts = urlsplit(spec)
    except ValueError as error:
        raise UsageError(f"{shown} isn't a URL: {error}") from None
    scheme = parts.scheme.lower()
    if scheme == "file" and parts.netloc in {"", "localhost"}:
        return _of_path(url2pathname(parts.path))
    if scheme not in {"http", "https", "file"} and scheme.partition("+")[0] not in {"git", "hg", "svn", "bzr"}:
        raise UsageError(
            f"{shown}: installers take http, https, file, and a repository as git+https, git+ssh, hg+https …"
        )
    what = "the repository" if "+" in scheme else "what is at"
    return Wanted("url", spec, f"{what} {shown}")


def _of_name(spec: str, *, exact: bool, installed: Mapping[str, str]) -> Wanted:
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        requirement = Requirement(spec)
    except InvalidRequirement as error:
        why = one_line(str(error).splitlines()[0])
        raise UsageError(f"{one_line(spec, 80)!r} is neither a name, a requirement, a path nor a URL: {why}") from None
    if canonical(requirement.name) == _OWN:
        raise UsageError("that is Mibyan itself, not a plugin; its extras and versions are your installer's business")
    if requirement.url is not None:
        _of_url(requirement.url)
        shown = one_line(without_secrets(requirement.url), 300)
        return Wanted("url", str(requirement), f"{requirement.name}, at {shown}", canonical(requirement.name))
    return _of_requirement(requirement, exact=exact, installed=installed)


def _of_requirement(requirement: Requirement, *, exact: bool, installed: Mapping[str, str]) -> Wanted:
    given = canonical(requirement.name)
    if exact or given.startswith(PREFIX):
        name, why = given, ""
    elif given in installed:
        name, why = canonical(installed[given]), f", whose plugin {given!r} is installed"
    else:
        name, why = f"{PREFIX}{given}", f", as plugins are called (--exact: the distribution {given!r} itself)"
    requirement.name = name
    note = f"; the folder ./{given} isn't meant" if Path(given).is_dir() else ""
    return Wanted("name", str(requirement), f"the distribution {str(requirement)!r}{why}{note}", name)
