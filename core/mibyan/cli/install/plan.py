"""What an installer would change, found out beforehand, and what of that would harm Mibyan (plugins.W4)."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mibyan.cli.install.installers import InstallerError, run, without_secrets
from mibyan.plugins.sources.ids import PREFIX, canonical
from mibyan.plugins.sources.imported import header
from mibyan.records import record
from mibyan.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mibyan.cli.install.installers import Installer
    from mibyan.cli.install.spec import Wanted

_OWN = "mibyan"
#: A line of uv's plan: ` + name==1.0 (from …)`, ` - name==1.0`, ` ~ name==1.0`, ` + name @ file:///…`.
_LINE = re.compile(r"^ (?P<sign>[+~-]) (?P<name>[\w.-]+)(?:==(?P<version>\S+)| @ (?P<url>\S+))?")


@record
class Step:
    """A distribution that would be put in, replaced or removed."""

    #: Its canonical name.
    name: str
    #: The version that would be there; empty: not known, or none.
    version: str
    #: The version that is there; empty: none.
    was: str = ""
    #: Where it comes from, if that is known.
    url: str = ""
    #: What it requires; `None`: not known.
    requires: tuple[str, ...] | None = None
    #: Whether it would be gone.
    removed: bool = False

    @property
    def path(self) -> Path | None:
        """The wheel or folder, where it is at hand."""
        from urllib.parse import urlsplit
        from urllib.request import url2pathname

        if not self.url.startswith("file:"):
            return None
        path = Path(url2pathname(urlsplit(self.url).path))
        return path if path.suffix == ".whl" or path.is_dir() else None

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {"name": self.name, "version": self.version or None, "was": self.was or None, "removed": self.removed,
                "url": without_secrets(self.url) or None}  # fmt: skip

    def __str__(self) -> str:
        if self.removed:
            return f"- {self.name} {self.was}"
        version = one_line(self.version or without_secrets(self.url) or "(its version is known once it is built)")
        if not self.was:
            return f"+ {self.name} {version}"
        return (
            f"~ {self.name} {version}, again" if self.was == self.version else f"~ {self.name} {self.was} → {version}"
        )


def work_out(
    installer: Installer, wanted: Wanted, folder: Path, *, more: Sequence[str], upgrade: bool
) -> tuple[Step, ...]:
    """What would change, by the installer's own dry run; a source is built for it, as for the installation itself.

    Args:
        installer: The installer, or the one that does its work.
        wanted: What is to be installed.
        folder: An empty folder, for what is said.
        more: The operator's own arguments.
        upgrade: Whether what is there already is replaced.

    Raises:
        InstallerError: There is nothing that could be installed.
    """
    there, more = versions(), [*pins((), folder), *more]
    if installer.name == "uv":
        said = run(
            installer.install(wanted.words, more=["--dry-run", *more], upgrade=upgrade, name=wanted.name),
            installer.environment,
            folder,
        )
        return tuple(_of_lines(said, there))
    report = folder / "report.json"
    extra = ["--dry-run", "--report", str(report), *more]
    run(installer.install(wanted.words, more=extra, upgrade=upgrade, name=wanted.name), installer.environment, folder)
    try:
        return tuple(_of_report(json.loads(report.read_bytes()), there))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InstallerError(f"pip's report of what it would do can't be read: {error}", hint="Is it pip 22.2 or newer?") from None  # fmt: skip


def versions() -> dict[str, str]:
    """The versions of all that is installed, by canonical name; a broken distribution has none."""
    from importlib.metadata import distributions

    found: dict[str, str] = {}
    for one in distributions():
        with suppress(Exception):  # a leftover, a file that isn't text: whatever lies there
            if name := header(one, "Name"):
                found.setdefault(canonical(name), one.version)
    return found


def _of_report(report: Mapping[str, Any], there: Mapping[str, str]) -> Iterator[Step]:
    for item in report["install"]:
        said = item["metadata"]
        name = canonical(said["name"])
        url = str(item.get("download_info", {}).get("url", ""))
        yield Step(name, str(said["version"]), there.get(name, ""), url, tuple(said.get("requires_dist", ())))


def _of_lines(said: str, there: Mapping[str, str]) -> Iterator[Step]:
    found = [match for line in said.splitlines() if (match := _LINE.match(line)) is not None]
    added = {canonical(match["name"]) for match in found if match["sign"] != "-"}
    for match in found:
        name = canonical(match["name"])
        if match["sign"] != "-":
            yield Step(name, match["version"] or "", there.get(name, ""), match["url"] or "")
        elif name not in added:
            yield Step(name, "", match["version"] or there.get(name, ""), removed=True)


def pins(steps: Sequence[Step], folder: Path) -> list[str]:
    """Arguments that hold the installer to what was shown: the versions of the plan, and Mibyan's own.

    Args:
        steps: The plan; none: Mibyan alone is held where it is, whatever is newer or, to a plugin, would do.
        folder: Where the file of constraints may lie.
    """
    held = {step.name: step.version for step in steps if step.version and step.path is None and not step.removed}
    there = versions()
    if _OWN in there:
        held[_OWN] = there[_OWN]
    if not held:
        return []
    path = folder / "constraints.txt"
    path.write_text("".join(f"{name}=={version}\n" for name, version in sorted(held.items())), encoding="utf-8")
    return [f"--constraint={path}"]


def is_named_as_plugin(step: Step) -> bool:
    """Whether a distribution is called as plugins are."""
    return step.name.startswith(PREFIX)
