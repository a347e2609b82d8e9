"""Fabricated distributions: what an installer would have left in a site folder, without an installer."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from typing import TYPE_CHECKING, Any

from mibyan.records import field, record
from mibyan.testing.files import manifest_text, write, write_all

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__tracebackhide__ = True  # a failing test shows its own lines

#: The group of entry points in which plugins are found.
GROUP = "mibyan.plugins"

_PREFIX = re.compile(r"mibyan[-_.]+plugin[-_.]+", re.IGNORECASE)


@record
class FabricatedDistribution:
    """A distribution as it lies in a site folder."""

    name: str
    version: str
    #: Its `*.dist-info`.
    info: Path
    #: The site folder, which is an entry of `sys.path`.
    site: Path
    #: Where its code lies: the site folder; of an editable install the folder that its `.pth` names.
    code: Path
    #: The top-level modules that were written.
    modules: tuple[str, ...] = ()
    #: Every file that was written.
    files: tuple[Path, ...] = field(default=(), repr=False)

    @property
    def id(self) -> str:
        """The id of the plugin in it (plugins.F2): the canonical name without `mibyan-plugin-`."""
        from mibyan.plugins.sources.ids import distribution_id

        return distribution_id(self.name)


def write_distribution(
    site: Path,
    name: str,
    version: str = "1.0",
    entry_points: Mapping[str, Mapping[str, str] | str] | None = None,
    manifest: Mapping[str, Any] | str | bytes | None = None,
    *,
    source: str | bytes | None = None,
    files: Mapping[str, str | bytes] | None = None,
    editable: Path | None = None,
    requires: tuple[str, ...] = (),
    manifest_file: str = "mibyan.json",
    metadata: str | bytes | None = None,
) -> FabricatedDistribution:
    """Write a distribution into a site folder; see `make_dist` in `mibyan.testing.pytest_plugin` for the arguments.

    Args:
        site: The site folder.
        name: The distribution's name.
        version: Its version.
        entry_points: By group (`{"mibyan.plugins": {"weather": "weather"}}`), or those of `mibyan.plugins` only
            (`{"weather": "weather"}`).
        manifest: Its manifest, as a mapping or as text.
        source: The source of its module.
        files: Further files, by their paths below the code's folder.
        editable: The folder of its code, if that doesn't lie in the site folder.
        requires: What it depends on, in the words of `Requires-Dist`.
        manifest_file: `mibyan.json`, in the dist-info, or `plugin.yaml`, as package data.
        metadata: The text of METADATA; empty: there is no such file, as an interrupted uninstall leaves it.

    Raises:
        ValueError: A file lies outside, or the manifest's place isn't known.
    """
    if manifest_file not in {"mibyan.json", "plugin.yaml"}:
        raise ValueError(f"a manifest is in mibyan.json or in plugin.yaml, not in {manifest_file!r}")
    module = module_of(name)
    code = site if editable is None else editable
    written = [] if source is None else [write(code / module / "__init__.py", source)]
    written += write_all(code, files)
    info = site / f"{re.sub(r'[-_.]+', '_', name)}-{version}.dist-info"
    groups = _groups(entry_points, name, module, has_code=source is not None)
    told = _metadata(name, version, requires) if metadata is None else metadata
    written += [write(info / "METADATA", told)] if told else []
    written += [write(info / "entry_points.txt", _entry_points_text(groups))] if groups else []
    written += [write(info / "WHEEL", _WHEEL), write(info / "INSTALLER", "mibyan.testing\n")]
    if manifest is not None:
        place = info / "extra_metadata" if manifest_file == "mibyan.json" else code / module
        written.append(write(place / manifest_file, manifest_text(manifest)))
    if editable is not None:
        said = {"url": editable.as_uri(), "dir_info": {"editable": True}}
        written.append(write(info / "direct_url.json", json.dumps(said)))
        written.append(write(site / f"__editable__.{module}-{version}.pth", f"{editable}\n"))
    written.append(_write_record(info, written, site))
    tops = dict.fromkeys(path.relative_to(code).parts[0] for path in written if path.suffix == ".py")
    return FabricatedDistribution(
        name, version, info, site, code, tuple(top.removesuffix(".py") for top in tops), tuple(written)
    )


def module_of(name: str) -> str:
    """The module that a distribution's `source` becomes: its name with underscores."""
    return re.sub(r"[-_.]+", "_", name).lower()


def _groups(
    entry_points: Mapping[str, Mapping[str, str] | str] | None, name: str, module: str, *, has_code: bool
) -> dict[str, dict[str, str]]:
    """Entry points by group; a source alone is a plugin."""
    if entry_points is None:
        return {GROUP: {_PREFIX.sub("", name): module}} if has_code else {}
    plain = {key: value for key, value in entry_points.items() if isinstance(value, str)}
    groups = {key: dict(value) for key, value in entry_points.items() if not isinstance(value, str)}
    return {GROUP: plain, **groups} if plain else groups


def _entry_points_text(groups: Mapping[str, Mapping[str, str]]) -> str:
    sections = [
        "\n".join([f"[{group}]", *(f"{key} = {value}" for key, value in lines.items())])
        for group, lines in groups.items()
    ]
    return "\n\n".join(sections) + "\n"


def _metadata(name: str, version: str, requires: tuple[str, ...]) -> str:
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    return "\n".join([*lines, *(f"Requires-Dist: {one}" for one in requires)]) + "\n"


def _write_record(info: Path, written: list[Path], site: Path) -> Path:
    """RECORD (PEP 376, 427): each file of the site folder with its digest and size, and itself without."""
    target = info / "RECORD"
    rows = [_record_row(path, site) for path in written if path.is_relative_to(site)]
    rows.append(f"{target.relative_to(site).as_posix()},,")
    return write(target, "\n".join(rows) + "\n")


def _record_row(path: Path, site: Path) -> str:
    data = path.read_bytes()
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{path.relative_to(site).as_posix()},sha256={digest},{len(data)}"


_WHEEL = "Wheel-Version: 1.0\nGenerator: mibyan.testing\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
