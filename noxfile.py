"""Every task of the house; `nox` alone runs what CI runs, `nox --list` shows them with a sentence each."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import nox

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.reuse_existing_virtualenvs = True
nox.options.sessions = ["lint", "types", "imports", "tests", "template", "docs"]

ROOT = Path(__file__).parent
PROJECT = nox.project.load_toml(ROOT / "pyproject.toml")
SUPPORTED = ("3.11", "3.12", "3.13", "3.14")


def pyenv_folders() -> list[str]:
    """The folders of the interpreters that pyenv keeps (its shims answer only for the ones it has switched on)."""
    if not shutil.which("pyenv"):
        return []
    answer = subprocess.run(["pyenv", "root"], capture_output=True, text=True, check=False)
    versions = Path(answer.stdout.strip() or "/nonexistent", "versions")
    return sorted(str(folder) for folder in versions.glob("3.*/bin"))


def search_path() -> str:
    """`PATH` with this interpreter's folder first and pyenv's interpreters ahead of its shims."""
    here = [str(Path(sys.executable).parent), str(Path(sys.base_prefix, "bin"))]
    inherited = [folder for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
    shims = next((i for i, folder in enumerate(inherited) if "shims" in Path(folder).parts), len(inherited))
    return os.pathsep.join([*here[:1], *inherited[:shims], *pyenv_folders(), *inherited[shims:], *here[1:]])


def found(version: str) -> bool:
    """Whether there is a `pythonX.Y` that starts (a pyenv shim may not)."""
    program = shutil.which(f"python{version}")
    return bool(program) and subprocess.run([program, "-c", ""], capture_output=True, check=False).returncode == 0


os.environ["PATH"] = search_path()
os.environ["UV_PYTHON_DOWNLOADS"] = "never"  # an interpreter that isn't here is skipped, never fetched

#: The supported interpreters of this machine; the others are skipped, in CI too.
PYTHONS = [version for version in SUPPORTED if found(version)] or [f"{sys.version_info[0]}.{sys.version_info[1]}"]


def install(session: nox.Session, *groups: str, project: bool = True) -> None:
    """Install the dependency groups of pyproject.toml, and Mibyan itself as an editable."""
    wanted = nox.project.dependency_groups(PROJECT, *groups)
    session.install(*wanted, *(["-e", "."] if project else []))


@nox.session
def lint(session: nox.Session) -> None:
    """Ruff: every rule but the excluded ones, and the layout."""
    install(session, "lint", project=False)
    session.run("ruff", "check", *session.posargs)
    session.run("ruff", "format", "--check")


@nox.session
def types(session: nox.Session) -> None:
    """Mypy, strict."""
    install(session, "types")
    session.run("mypy", *session.posargs)


@nox.session
def imports(session: nox.Session) -> None:
    """The floors: imports run downward only, and the core never imports a built-in plugin."""
    install(session, "imports", project=False)
    path = os.pathsep.join(["core", "builtin_plugins"])
    session.run("lint-imports", "--no-cache", *session.posargs, env={"PYTHONPATH": path})


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """The whole suite on the oldest interpreter found; on the others its unit part, with fewer random examples."""
    install(session, "test")
    # Attacks and storms prove promises of the design, and the house is looked at as text: no interpreter changes either
    # (CONTRIBUTING, "Tests": what is run where).
    elsewhere = [f"--ignore=tests/{folder}" for folder in ("hostile", "dispatch_many", "house")]
    unit = ["-m", "not system and not thorough", *elsewhere, "--hypothesis-profile=quick"]
    part = [] if session.python == PYTHONS[0] else unit
    # Hundreds of tests start the command line: without byte code each start would compile all of Mibyan.
    session.run("pytest", "-n", "auto", *part, *session.posargs, env={"PYTHONDONTWRITEBYTECODE": None})


@nox.session(python=PYTHONS[0], default=False)
def search(session: nox.Session) -> None:
    """Look for new examples that break a property; what is found becomes a plain test."""
    install(session, "test")
    session.run(
        "pytest", "-n", "auto", "-m", "hypothesis", "--hypothesis-profile=search", "--timeout=1800", *session.posargs
    )


#: The worked example.
EXAMPLE = "mibyan-plugin-git"
#: Plugins that the template is tried with: names that need a canonical form or a module name of another kind.
BAKED = (
    ("weather", "Weather for the model."),
    ("My_Tool.x2", "Quotes \"double\", 'single' and \\ {{ braces }} {% raw %} \n on two lines"),
    ("class", "\u200fمكوّن إضافي للطقس 🌦️"),
    ("x" * 50, "Very long. " * 400),
)


@nox.session
def template(session: nox.Session) -> None:
    """Plugins from the template, and the worked example: linted, checked, built, installed beside Mibyan's wheel, tested."""
    groups = nox.project.dependency_groups(PROJECT, "lint", "types")
    session.install(*PROJECT["project"]["dependencies"], *groups, "build", "hatchling", "pytest")
    # Not below this checkout: what git ignores, ruff doesn't look at.
    with tempfile.TemporaryDirectory(prefix="mibyan-template-") as name:
        build_and_install(session, ROOT, Path(name, "dist"))
        plugins = Path(name, "plugins")
        shutil.copytree(ROOT / "examples" / EXAMPLE, plugins / EXAMPLE)
        for slug, description in BAKED:
            said = [f"--field=slug={slug}", f"--field=description={description}", '--field=author_name=A "B" \\ C']
            session.run("mibyan", "plugins", "new", str(plugins), "--no-input", *said)
        for project in sorted(plugins.iterdir()):
            prove(session, project)
        for slug, _ in BAKED:
            session.run("mibyan", "call", "hello_" + re.sub(r"[-_.]+", "_", slug.lower()), "name=Ada")
        commit = [
            "-c",
            "user.name=Ada",
            "-c",
            "user.email=ada@example.com",
            "commit",
            "-q",
            "--allow-empty",
            "-m",
            "One",
        ]
        for words in (["init", "-q"], commit):
            session.run("git", "-C", str(plugins), *words, external=True)
        session.run("mibyan", "call", "git_log", f"folder={plugins}", "count:=1")


def build_and_install(session: nox.Session, project: Path, dist: Path) -> None:
    """Build a project's wheel, and install that very wheel."""
    session.run("python", "-m", "build", "--no-isolation", "--wheel", "--outdir", str(dist), str(project), silent=True)
    session.install("--force-reinstall", "--no-deps", *map(str, dist.glob("*.whl")))


def prove(session: nox.Session, project: Path) -> None:
    """What an author's own checks do, on the wheel."""
    with session.chdir(project):
        session.run("ruff", "check", "--no-cache")
        session.run("ruff", "format", "--check", "--no-cache")
        build_and_install(session, project, project / "dist")
        session.run("mypy", "--cache-dir", str(project.parents[1] / "mypy"))
        session.run("pytest", "-q", "-p", "no:cacheprovider")
        session.run("mibyan", "plugins", "check", *map(str, Path("dist").glob("*.whl")))


@nox.session
def docs(session: nox.Session) -> None:
    """The documentation: built with warnings as errors, its examples run."""
    install(session, "docs")
    target = Path(session.create_tmp()) / "docs"
    for builder in ("html", "doctest"):
        session.run("sphinx-build", "-q", "-W", "--keep-going", "-b", builder, "docs", str(target / builder))
    session.log(f"the pages are in {target / 'html'}")


@nox.session(default=False)
def bench(session: nox.Session) -> None:
    """The figures that the project promises, each beside its floor; groups and options go after `--`."""
    install(session)
    session.run("python", "-m", "benchmarks", *session.posargs, env={"PYTHONDONTWRITEBYTECODE": None})


@nox.session(default=False)
def fix(session: nox.Session) -> None:
    """Let ruff mend and lay out what it can."""
    install(session, "lint", project=False)
    session.run("ruff", "check", "--fix")
    session.run("ruff", "format")


@nox.session(default=False)
def build(session: nox.Session) -> None:
    """Build the wheel and the source distribution into dist/."""
    session.install("build")
    session.run("python", "-m", "build", *session.posargs)
