"""Containers, infrastructure and packages: programs whose commands have verbs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from mibyan.approvals.shell.options import Options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mibyan.approvals.rules.checks import Checker, Found
    from mibyan.approvals.shell.call import Call

_CONTAINER_VALUES = (
    *tuple("Hlcnpf"),
    "context", "config", "host", "log-level", "project-name", "file", "profile", "project-directory", "env-file", "url", "connection", "namespace", "kubeconfig", "cluster", "user",
)  # fmt: skip
_CONTAINER_VERBS = frozenset(("stop", "restart", "kill", "rm", "rmi", "down", "prune", "pause"))
_CONTAINER_NOUNS = frozenset(
    (
        "container",
        "image",
        "volume",
        "network",
        "system",
        "builder",
        "buildx",
        "compose",
        "stack",
        "service",
        "swarm",
        "node",
        "pod",
        "machine",
        "secret",
        "config",
        "plugin",
        "context",
    )
)
_NOUN_VERBS = _CONTAINER_VERBS | {"remove", "delete", "reset", "leave"}


def _docker(call: Call) -> Iterator[Found]:
    operands = [arg.text for arg in Options(call.args[1:], _CONTAINER_VALUES, mixed=False).operands]
    if operands[:1] and operands[0] in _CONTAINER_NOUNS:
        rest = Options(
            [arg for arg in call.args[1:] if arg.text in operands][1:], _CONTAINER_VALUES, mixed=False
        ).operands
        verb, verbs = rest[0].text if rest else "", _NOUN_VERBS
    else:
        verb, verbs = operands[0] if operands else "", _CONTAINER_VERBS
    if verb in verbs:
        yield "container_lifecycle", call.span
    if verb in {"run", "create"} and any(
        re.search(r"(?:^|=|source=|src=)/(?::|,|$)|docker\.sock", word) or word == "--privileged" for word in call.words
    ):
        yield "container_lifecycle", call.span


def _compose(call: Call) -> Iterator[Found]:
    operands = Options(call.args[1:], _CONTAINER_VALUES, mixed=False).operands
    if operands and operands[0].text in _CONTAINER_VERBS:
        yield "container_lifecycle", call.span


def _verbs(
    rule: str,
    *patterns: str,
    valued: tuple[str, ...] = (),
    dry: tuple[str, ...] = ("--dry-run", "--dryrun", "--what-if", "-n"),
) -> Checker:
    """A rule about the words of a command, without its options, that begin by one of some patterns."""
    pattern = re.compile("|".join(f"(?:{one})" for one in patterns))

    def check(call: Call) -> Iterator[Found]:
        words = call.words
        if any(word.split("=")[0] in dry and not word.endswith("=none") for word in words):
            return
        operands = " ".join(arg.text for arg in Options(call.args[1:], valued).operands)
        if pattern.match(operands):
            yield rule, call.span

    return check


_INFRA = "infra_destructive"
_AWS = r"(?:s3 (?:rb|rm .*|mv )|s3api delete-|[\w-]+ (?:delete-|terminate-|remove-|deregister-|purge-|disable-|stop-|reboot-|destroy-|revoke-|release-))"


def _aws(call: Call) -> Iterator[Found]:
    words = call.words
    operands = [word for word in words if not word.startswith("-")]
    text = " ".join(operands)
    if any(word in {"--dryrun", "--dry-run"} for word in words):
        return
    if re.match(r"s3 (?:rb|rm)\b", text):
        if "rb" in operands or "--recursive" in words or text.startswith("s3 rm"):
            yield _INFRA, call.span
    elif re.search(_AWS, text) or ("s3 sync" in text and "--delete" in words):
        yield _INFRA, call.span


def _anywhere(rule: str, *verbs: str, dry: tuple[str, ...] = ("--dry-run",)) -> Checker:
    """A rule about a verb that stands anywhere among the words, as in `gcloud compute instances delete`."""

    def check(call: Call) -> Iterator[Found]:
        words = call.words
        if any(word in verbs or word.split(":")[-1] in verbs for word in words) and not any(
            word.split("=")[0] in dry for word in words
        ):
            yield rule, call.span

    return check


def _terraform(call: Call) -> Iterator[Found]:
    words = [word for word in call.words if not word.startswith("-chdir")]
    verb = words[0] if words else ""
    if (
        (
            verb == "destroy"
            or (verb in {"apply", "plan"} and "-destroy" in words and verb == "apply")
            or (verb == "apply" and any("auto-approve" in word for word in words))
        )
        or (verb in {"state", "workspace"} and len(words) > 1 and words[1] in {"rm", "delete", "push", "mv"})
        or (verb in {"taint", "force-unlock", "run-all"} and (verb != "run-all" or "destroy" in words))
    ):
        yield _INFRA, call.span


def _kubectl(call: Call) -> Iterator[Found]:
    options = Options(
        call.args[1:],
        (
            "n",
            "namespace",
            "f",
            "filename",
            "l",
            "selector",
            "context",
            "kubeconfig",
            "o",
            "output",
            "cluster",
            "user",
            "k",
            "replicas",
        ),
    )
    if any(value.text != "none" for value in options.values("dry-run")) or any(
        word == "--dry-run" for word in call.words
    ):
        return
    operands = [arg.text for arg in options.operands]
    verb = operands[0] if operands else ""
    scaled = verb == "scale" and options.value("replicas") == "0"
    if (
        verb in {"delete", "drain", "cordon", "taint"}
        or scaled
        or operands[:2] in (["rollout", "restart"], ["rollout", "undo"])
        or (verb == "replace" and options.has("force"))
    ):
        yield _INFRA, call.span


# Packages ------------------------------------------------------------------------------------------------------------

_PACKAGES = "package_uninstall"


def _package(
    *verbs: str,
    valued: tuple[str, ...] = (),
    dry: tuple[str, ...] = ("--dry-run", "-s", "--simulate", "--just-print"),
) -> Checker:
    """A rule about a package manager's verb: its first operand, or the second after `global`."""

    def check(call: Call) -> Iterator[Found]:
        operands = [arg.text for arg in Options(call.args[1:], valued).operands]
        if operands[:1] in (["global"], ["tool"], ["env"], ["pip"], ["self"], ["plugin"], ["profile"], ["toolchain"]):
            operands = operands[1:]
        if operands and operands[0] in verbs and not any(word in dry for word in call.words):
            yield _PACKAGES, call.span

    return check


def _pacman(call: Call) -> Iterator[Found]:
    if any(re.match(r"-R|--remove", word) for word in call.words) and "-p" not in call.words:
        yield _PACKAGES, call.span


def _flags(*flags: str) -> Callable[[Call], Iterator[Found]]:
    def check(call: Call) -> Iterator[Found]:
        if any(word in flags for word in call.words):
            yield _PACKAGES, call.span

    return check


def _brew(call: Call) -> Iterator[Found]:
    from mibyan.approvals.rules.machine import CHECKS as MACHINE

    yield from _package("uninstall", "rm", "remove", "autoremove", "untap")(call)
    yield from MACHINE["service"](call)


_TOOLS = frozenset(
    (
        "pip",
        "venv",
        "pytest",
        "unittest",
        "http.server",
        "json.tool",
        "build",
        "mypy",
        "ruff",
        "black",
        "compileall",
        "site",
        "ensurepip",
    )
)


def _fetches(call: Call) -> Iterator[Found]:
    """`pip install` of an address: what is run afterwards is code from the network."""
    if "install" in call.words[:2] and any("://" in word or word.startswith("git+") for word in call.words):
        call.scope.fetched_code = True
    yield from ()


def _python_module(call: Call) -> Iterator[Found]:
    """`python -m pip uninstall`."""
    words = call.words
    if "-m" in words:
        rest = call.args[words.index("-m") + 2 :]
        if call.scope.fetched_code and rest and rest[0].text not in _TOOLS:
            yield "remote_exec", rest[0].span
        check = CHECKS.get(rest[0].text) if rest else None
        if check is not None and rest[0].text in {"pip", "pipx", "conda", "poetry", "uv"}:
            yield from check(call.inner(rest))
            yield from _fetches(call.inner(rest))


def _mercurial(call: Call) -> Iterator[Found]:
    verb = call.words[0] if call.words else ""
    if verb in {"strip", "purge", "rollback"} or (
        verb in {"update", "up", "checkout"} and {"-C", "--clean"} & {*call.words}
    ):
        yield "git_destructive", call.span


def _both(*checks: Checker) -> Checker:
    def check(call: Call) -> Iterator[Found]:
        for one in checks:
            yield from one(call)

    return check


_NPM_VALUES = ("prefix", "C", "dir", "cwd", "w", "workspace", "filter", "registry", "F")
_APT = ("o", "c", "t", "target-release", "option")
_CLOUD = ("delete", "destroy", "remove", "purge", "deallocate", "terminate", "rm", "reset", "stop", "detach", "revoke")

CHECKS: Final[dict[str, Checker]] = {
    **dict.fromkeys(("docker", "podman", "nerdctl"), _docker), "docker-compose": _compose, "podman-compose": _compose,
    "terraform": _terraform, "tofu": _terraform, "terragrunt": _terraform, "kubectl": _kubectl, "oc": _kubectl, "k": _kubectl,
    "helm": _verbs(_INFRA, "uninstall", "delete", "del ", "un ", "rollback", "repo remove", "plugin uninstall", valued=("n", "namespace", "kube-context", "kubeconfig"), dry=("--dry-run",)), "helmfile": _verbs(_INFRA, "destroy", "delete"), "aws": _aws,
    **dict.fromkeys(("gcloud", "az", "doctl", "ibmcloud", "oci", "aliyun", "linode-cli", "hcloud", "scw", "exo", "openstack", "ovhcloud", "yc", "tccli"), _anywhere(_INFRA, *_CLOUD)),
    "gsutil": _verbs(_INFRA, "(?:-m )?(?:rm|rb)\\b"), "s3cmd": _verbs(_INFRA, "del", "rb", "rm"), "mc": _verbs(_INFRA, "rm", "rb"), "rclone": _verbs(_INFRA, "delete", "purge", "rmdirs", "deletefile", "cleanup", "sync"),
    "pulumi": _verbs(_INFRA, "destroy", "stack rm", "state delete"), "cdk": _verbs(_INFRA, "destroy"), "cdktf": _verbs(_INFRA, "destroy"), "sam": _verbs(_INFRA, "delete"), "serverless": _verbs(_INFRA, "remove"), "sls": _verbs(_INFRA, "remove"),
    "heroku": _anywhere(_INFRA, "destroy", "delete", "reset", "remove"), "flyctl": _anywhere(_INFRA, "destroy", "delete", "remove"), "fly": _anywhere(_INFRA, "destroy", "delete", "remove"),
    "vercel": _verbs(_INFRA, "remove", "rm", "env rm", "domains rm"), "netlify": _anywhere(_INFRA, "sites:delete", "delete", "unset"), "wrangler": _anywhere(_INFRA, "delete"), "firebase": _anywhere(_INFRA, "delete", "projects:delete", "firestore:delete"),
    "vagrant": _verbs(_INFRA, "destroy", "halt", "box remove"), "virsh": _verbs(_INFRA, "destroy", "undefine", "shutdown", "reboot", "vol-delete", "pool-delete", "snapshot-delete"), "eksctl": _verbs(_INFRA, "delete"), "kops": _verbs(_INFRA, "delete"),
    "minikube": _verbs(_INFRA, "delete", "stop"), "kind": _verbs(_INFRA, "delete"), "k3d": _verbs(_INFRA, "(?:cluster|node|registry) delete"), "nomad": _verbs(_INFRA, "(?:job )?stop", "system gc"), "consul": _verbs(_INFRA, "kv delete", "leave"),
    "vault": _verbs(_INFRA, "delete", "(?:kv|secrets|auth|lease|policy|token) (?:delete|destroy|disable|revoke)"), "etcdctl": _verbs(_INFRA, "del"), "lxc": _verbs(_INFRA, "delete", "stop", "restart"), "multipass": _verbs(_INFRA, "delete", "purge", "stop"),
    "qm": _verbs(_INFRA, "destroy", "stop"), "pct": _verbs(_INFRA, "destroy", "stop"), "supabase": _verbs(_INFRA, "db reset", "projects delete"), "railway": _anywhere(_INFRA, "down", "delete"), "ceph": _anywhere(_INFRA, "purge", "destroy", "rm", "delete"),
    "npm": _package("uninstall", "un", "unlink", "remove", "rm", "r", "unpublish", "deprecate", valued=_NPM_VALUES), "pnpm": _package("un", "uninstall", "remove", "rm", "unlink", valued=_NPM_VALUES),
    "yarn": _package("remove", "unlink", valued=_NPM_VALUES), "bun": _package("remove", "rm", valued=("cwd",)), **dict.fromkeys(("pip", "pip3", "pipx", "uv", "poetry", "pdm", "pipenv", "rye", "hatch", "conda", "mamba", "micromamba", "easy_install"), _both(_package("uninstall", "uninstall-all", "remove", "purge", "prune", valued=("n", "p", "name", "prefix", "python", "group", "proxy", "index-url", "i", "cache-dir", "log", "cert", "timeout", "retries", "trusted-host")), _fetches)),
    **dict.fromkeys(("apt", "apt-get", "aptitude", "dnf", "yum", "microdnf", "zypper", "apk", "pkg", "pkg_delete", "xbps-remove", "eopkg", "opkg", "snap", "flatpak", "port", "choco", "scoop", "winget", "urpme", "slackpkg", "swupd", "nala"),
                    _package("remove", "purge", "autoremove", "erase", "uninstall", "del", "delete", "rm", "clean-all", "autopurge", "full-purge", valued=_APT)),
    **{name: _package("uninstall", "remove", "yank", "cleanup") for name in ("gem", "cargo", "opam", "luarocks", "composer", "mix", "stack", "cabal", "nimble", "dotnet", "asdf", "mise", "sdk", "nvm", "pyenv", "rbenv", "rustup")},
    "emerge": _flags("-C", "--unmerge", "-c", "--depclean"), "code": _flags("--uninstall-extension"), "nix-env": _flags("-e", "--uninstall"), "bq": _verbs(_INFRA, "rm", "remove"),
    "svn": _verbs("git_destructive", "revert"), "hg": _mercurial, "brew": _brew, "pacman": _pacman, "yay": _pacman, "paru": _pacman, "rpm": _flags("-e", "--erase"), "dpkg": _flags("-r", "-P", "--remove", "--purge"), "pkgutil": _flags("--forget"),
    "python": _python_module, "python2": _python_module, "python3": _python_module, "py": _python_module,
}  # fmt: skip
