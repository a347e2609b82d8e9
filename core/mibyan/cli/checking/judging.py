"""The checks that run no code of the plugin: what its files say is judged (plugins.W3, first half)."""

from __future__ import annotations

import re
import sys
import warnings
from typing import TYPE_CHECKING, Any

from mibyan._version import __version__
from mibyan.cli.checking.schemas import unsayable
from mibyan.cli.doctor.plugins.packages import GENERIC
from mibyan.errors import ManifestError, MibyanError
from mibyan.paths import decode_text, read_bytes
from mibyan.plugins.manifest import parse_manifest
from mibyan.plugins.sources.authored import read as read_data
from mibyan.plugins.sources.entrypoints import GROUP, entry_point, near_misses
from mibyan.plugins.sources.folders import _target
from mibyan.plugins.sources.ids import PREFIX, differing, name_problem
from mibyan.text import counted, describe_exception, one_line

if TYPE_CHECKING:
    from pathlib import Path

    from mibyan.cli.checking.checks import Checklist
    from mibyan.cli.checking.facts import Facts
    from mibyan.plugins.manifest import Manifest

#: Bytes of a source that is compiled.
_SOURCE_LIMIT = 10_000_000
#: Problems of one kind that are told one by one.
_MOST = 5


def judge(facts: Facts, found: Checklist) -> None:
    """Judge what a plugin's files say."""
    _judge_entry_points(facts, found)
    _judge_id(facts, found)
    _judge_version(facts, found)
    _judge_manifest(facts, found)
    _judge_mibyan(facts, found)
    _judge_modules(facts, found)
    _judge_syntax(facts, found)
    _judge_words(facts, found)


def judge_built(facts: Facts, found: Checklist, project: Facts) -> None:
    """Judge a wheel that was built of a project: what only the wheel can tell."""
    _judge_entry_points(facts, found)
    _judge_id(facts, found)
    _judge_version(facts, found)
    _judge_shipped(facts, found, source=project.manifest)
    _judge_mibyan(facts, found)
    _judge_modules(facts, found)
    _judge_words(facts, found)


# Names ------------------------------------------------------------------------------------------------------------


def _judge_entry_points(facts: Facts, found: Checklist) -> None:
    """Whether there is one entry point in our group, of the right form."""
    if facts.form == "folder":
        found.skip(["entry-point"], "a folder plugin has none")
        return
    if facts.groups is None:
        found.skip(["entry-point"], f"{facts.origin} leaves the entry points to the build")
        return
    where, line = _place(facts, "entry-points"), f'[project.entry-points."{GROUP}"] {facts.id or "ID"} = "MODULE"'
    lines = facts.groups.get(GROUP, [])
    if not lines:
        wrong = near_misses(list(facts.groups))
        what = (
            f"the group {wrong[0]!r} is read by nobody" if wrong else f"there is no entry point in the group {GROUP!r}"
        )
        mend = f"call the group {GROUP!r}: {line}" if wrong else line
        found.fail("entry-point", f"{what}, so the plugin isn't found", mend, where)
    elif len(lines) > 1:
        names = ", ".join(name for name, _ in lines)
        found.fail("entry-point", f"a distribution is one plugin, with one entry point in {GROUP!r}; this has {len(lines)}: {names}",
                   "make a distribution of each, or register all of it from one module", where)  # fmt: skip
    elif not entry_point(*lines[0]).well_formed:
        found.fail("entry-point", f"{lines[0][1]!r} isn't of the form 'module' or 'module:attribute'", line, where)
    elif not _is_there(facts, entry_point(*lines[0]).module):
        found.fail("entry-point", f"the module {entry_point(*lines[0]).module!r} isn't there", "name a module that is, or see to it that the wheel has it", where)  # fmt: skip
    else:
        found.ok("entry-point", f"{lines[0][0]} = {lines[0][1]}")


def _is_there(facts: Facts, module: str) -> bool:
    """Whether a wheel has a module; what a project makes of its sources is known once it is built."""
    if facts.form != "wheel":
        return True
    path = facts.root.joinpath(*module.split("."))
    return path.is_dir() or any(path.parent.glob(f"{path.name}.*"))


def _judge_id(facts: Facts, found: Checklist) -> None:
    """Whether the names agree: the distribution's, the entry point's; the manifest's is judged with the manifest."""
    if not facts.name:
        if facts.form != "project" or facts.groups is not None:
            found.fail("id", "it has no name", f'{facts.origin}: [project] name = "{PREFIX}ID"', facts.origin)
        return
    problem, where = name_problem(facts.id), facts.origin
    lines = (facts.groups or {}).get(GROUP, [])
    if problem is None and len(lines) == 1:
        problem, where = differing(lines[0][0], facts.id, "entry point's name"), _place(facts, "entry-points")
    if problem is not None:
        mend = f"rename the folder: {facts.root}" if facts.form == "folder" else f"call the entry point {facts.id!r}, or the distribution {PREFIX}{lines[0][0] if lines else 'ID'}"  # fmt: skip
        found.fail("id", problem, mend, where)
    elif facts.form != "folder" and not facts.name.lower().replace("_", "-").replace(".", "-").startswith(PREFIX):
        found.warn("id", f"the distribution {facts.name!r} doesn't begin with {PREFIX!r}, by which people find plugins",
                   f'name = "{PREFIX}{facts.id}"', _place(facts, "name"))  # fmt: skip
    else:
        found.ok("id", f"the plugin's id is {facts.id!r}")


def _judge_version(facts: Facts, found: Checklist) -> None:
    if facts.version is None:
        found.skip(["version"], f"{facts.origin} leaves the version to the build")
    elif not facts.version:
        mend = 'version: "1.0"' if facts.form == "folder" else 'version = "1.0"'
        (found.warn if facts.form == "folder" else found.fail)(
            "version", "it has no version, so nobody can tell an upgrade", f"{facts.origin}: {mend}", facts.origin
        )
    else:
        from packaging.version import InvalidVersion, Version

        try:
            Version(facts.version)
        except InvalidVersion:
            found.fail("version", f"{facts.version!r} isn't a version (PEP 440)", f"{facts.origin}: 1.0, 1.1, 2.0rc1 …", facts.origin)  # fmt: skip
        else:
            found.ok("version", facts.version)


def _judge_modules(facts: Facts, found: Checklist) -> None:
    """Whether a wheel puts modules at the top of site-packages that aren't its own alone."""
    if facts.form != "wheel":
        why = (
            "a folder plugin's modules have a package of their own"
            if facts.form == "folder"
            else "known once it is built"
        )
        found.skip(["modules"], why)
        return
    generic = [name for name in facts.tops if name.lower() in GENERIC]
    std = [name for name in facts.tops if name in sys.stdlib_module_names]
    named = ", ".join(repr(name) for name in (*generic, *std))
    if std:
        found.fail("modules", f"it installs {named} at the top of site-packages, under the name of a module of Python's own",
                   "put it inside the plugin's own package", facts.origin)  # fmt: skip
    elif generic:
        found.fail("modules", f"it installs {named} at the top of site-packages, where any other distribution may put its own",
                   "leave it out of the wheel, or put it inside the plugin's own package ([tool.hatch.build.targets.wheel] packages = …)", facts.origin)  # fmt: skip
    elif not facts.tops:
        found.fail("modules", "it has no module", "[tool.hatch.build.targets.wheel] packages = …", facts.origin)
    else:
        found.ok("modules", f"it installs {', '.join(facts.tops)}")


# Manifest ---------------------------------------------------------------------------------------------------------


def _judge_manifest(facts: Facts, found: Checklist) -> None:
    _judge_shipped(facts, found, source=None)
    if facts.manifest is None:
        found.warn("manifest", "it has no manifest: nothing is known of it without importing it",
                   f"mibyan plugins manifest {facts.called or facts.root} --write", facts.origin)  # fmt: skip
        found.skip(["schemas"], "it has no manifest")
        return
    where = facts.shown(facts.manifest)
    try:
        data, _ = read_data(facts.manifest)
        manifest = parse_manifest(data, str(facts.manifest), lines=_lines(facts.manifest))
    except ManifestError as error:
        for problem in list(getattr(error, "problems", ()) or [error.message])[:_MOST]:
            found.fail("manifest", str(problem), "mibyan plugins manifest --schema says what there is", where)
        return
    except MibyanError as error:
        found.fail("manifest", error.message, error.hint, where)
        return
    problem = differing(manifest.id, facts.id, "manifest") if facts.id else None
    problem = problem or (_target(facts.root, manifest)[1] if facts.form == "folder" else None)
    for warning in manifest.warnings:
        found.warn("manifest", warning, "python -m pip install --upgrade mibyan", where)
    if problem is not None:
        found.fail("manifest", problem, f"id: {facts.id}", where)
    elif manifest.version and facts.version and manifest.version != facts.version:
        found.fail("manifest", f"the manifest says version {manifest.version!r}, the distribution {facts.version!r}", f"version: {facts.version}, or leave it out", where)  # fmt: skip
    else:
        found.ok("manifest", f"{where} is valid")
    _judge_range(manifest, where, found)
    _judge_schemas(manifest, where, found)


def _lines(path: Path) -> dict[Any, int]:
    """The line of each key, where the format has lines."""
    from mibyan.plugins.sources.manifests import _parse

    return dict(_parse(decode_text(read_bytes(path), path).removeprefix("\ufeff"), str(path))[1])


def _judge_shipped(facts: Facts, found: Checklist, source: Path | None) -> None:
    """Whether a wheel has a manifest in its dist-info."""
    if facts.form != "wheel":
        why = "a folder has its manifest in it" if facts.form == "folder" else "known once it is built"
        found.skip(["manifest.shipped"], why)
        return
    line = '[tool.hatch.build.targets.wheel.extra-metadata] "mibyan.json" = "mibyan.json"'
    if facts.manifest is None and source is None:
        found.skip(["manifest.shipped"], "there is no manifest")
    elif facts.manifest is None:
        found.fail(
            "manifest.shipped", f"the wheel has no manifest, though the project has {source}", line, facts.origin
        )
    elif "extra_metadata" not in facts.manifest.parts:
        found.warn("manifest.shipped", f"the manifest is package data ({facts.shown(facts.manifest)}): in the dist-info it is found in editable installs too",
                   line, facts.origin)  # fmt: skip
    else:
        found.ok("manifest.shipped", facts.shown(facts.manifest))


def _judge_range(manifest: Manifest, where: str, found: Checklist) -> None:
    """Whether the manifest's range has the Mibyan that runs."""
    from packaging.specifiers import SpecifierSet

    if not manifest.requires_mibyan:
        found.warn("requires-mibyan", "it doesn't say which versions of Mibyan it works with", f'requires_mibyan: "{_range()}"', where)  # fmt: skip
    elif not SpecifierSet(manifest.requires_mibyan).contains(__version__, prereleases=True):
        found.fail("requires-mibyan", f"requires_mibyan is {manifest.requires_mibyan!r}, and this is Mibyan {__version__}",
                   "check it with a Mibyan that it works with, or widen the range", where)  # fmt: skip
    else:
        found.ok("requires-mibyan", f"{manifest.requires_mibyan} has {__version__}")


def _judge_mibyan(facts: Facts, found: Checklist) -> None:
    """Whether what a distribution requires is written rightly and goes together with the Mibyan that runs."""
    from packaging.requirements import InvalidRequirement, Requirement

    for text in facts.requires:
        try:
            requirement = Requirement(text)
        except InvalidRequirement as error:
            found.fail("requires-mibyan", f"the dependency {text!r} can't be read: {one_line(str(error), 120)}", "write it as in PEP 508: name>=1.2", _place(facts, "dependencies"))  # fmt: skip
            continue
        if requirement.name.lower() == "mibyan" and not requirement.specifier.contains(__version__, prereleases=True):
            found.fail("requires-mibyan", f"its dependency {text!r} doesn't have this Mibyan, {__version__}",
                       f'dependencies = ["mibyan{_range()}"]', _place(facts, "dependencies"))  # fmt: skip
    found.skip(["requires-mibyan"], "it has no manifest")


def _judge_schemas(manifest: Manifest, where: str, found: Checklist) -> None:
    """Whether every provider has words for the schemas of the frozen tools."""
    if not manifest.tools:
        found.skip(["schemas"], "no tool is frozen")
        return
    problems = unsayable((tool.name, tool.schema) for tool in manifest.tools)
    for problem in problems[:_MOST]:
        problem.tell(found, where)
    found.ok("schemas", f"every provider takes the {len(manifest.tools)} frozen tools")


# Sources and words ------------------------------------------------------------------------------------------------


def _judge_syntax(facts: Facts, found: Checklist) -> None:
    """Whether all sources are Python."""
    number = 0
    sources = [path for path in facts.sources if _can_be_imported(facts, path)]
    for path in sources:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                compile(read_bytes(path, limit=_SOURCE_LIMIT), str(path), "exec", dont_inherit=True)
        except SyntaxError as error:
            number += 1
            where = f"{facts.shown(path)}:{error.lineno or 1}"
            found.fail("syntax", f"it isn't Python {sys.version_info[0]}.{sys.version_info[1]}: {error.msg}", f"mend {where}", where)  # fmt: skip
        except (MibyanError, ValueError, RecursionError, MemoryError) as error:
            number += 1
            found.fail("syntax", f"it can't be compiled: {describe_exception(error)}", None, facts.shown(path))
        if number == _MOST:
            return
    found.ok("syntax", f"{counted(len(sources), 'source file')}")


def _can_be_imported(facts: Facts, path: Path) -> bool:
    """Whether a source has a name to be imported by; a template in a plugin hasn't, and needn't be Python."""
    parts = path.relative_to(facts.root).with_suffix("").parts if path.is_relative_to(facts.root) else ()
    return all(part.isidentifier() for part in parts)


def _judge_words(facts: Facts, found: Checklist) -> None:
    """Whether it says what it is: nothing of it is needed to run, all of it to be chosen."""
    folder = facts.form == "folder"
    for check_id, said, what, mend in (
        (
            "description",
            facts.description,
            "it has no description",
            "description: …" if folder else 'description = "…"',
        ),
        ("readme", facts.readme, "it has no README", "write a README.md" if folder else 'readme = "README.md"'),
        ("license", facts.license, "it doesn't say its licence", "license: MIT" if folder else 'license = "MIT"'),
    ):
        if said is None:
            found.skip([check_id], f"{facts.origin} leaves it to the build")
        elif not said:
            found.warn(check_id, what, mend if folder else f"[project] {mend}", facts.origin)
        else:
            found.ok(check_id, one_line(said, 120) if isinstance(said, str) else "it is there")


def _place(facts: Facts, key: str) -> str:
    """The line of pyproject.toml that says a key, as far as it can be told; else the file."""
    if facts.form != "project":
        return facts.origin
    text = (facts.root / "pyproject.toml").read_text(encoding="utf-8", errors="replace")
    found = re.search(rf"^[ \t]*(?:\[project\.)?{re.escape(key)}\b", text, re.MULTILINE)
    return f"{facts.origin}:{text.count(chr(10), 0, found.start()) + 1}" if found else facts.origin


def _range() -> str:
    """A range that the running version is in, as an author would write it."""
    from packaging.specifiers import SpecifierSet

    plain = f">={'.'.join(__version__.split('.')[:2])}"
    return plain if SpecifierSet(plain).contains(__version__, prereleases=True) else f">={__version__}"
