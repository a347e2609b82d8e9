"""What a path is to a machine: its root, a system directory, a home, a disk, a credential, a configuration.

Paths are as `Scope.path` gives them: absolute where the working directory is known, with `HOME` for the home directory.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from mibyan.approvals.shell.values import CREDENTIAL, HOME, NO_ORIGINS, UNKNOWN

if TYPE_CHECKING:
    from mibyan.approvals.shell.scope import Scope
    from mibyan.approvals.shell.values import Arg

#: Directories without which the machine, or everybody's work on it, is lost.
_SYSTEM: Final = frozenset((
    "/", "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/proc", "/root", "/run",
    "/sbin", "/srv", "/sys", "/usr", "/usr/bin", "/usr/lib", "/usr/lib64", "/usr/libexec", "/usr/local", "/usr/sbin",
    "/usr/share", "/var", "/var/lib", "/nix", "/nix/store", "/snap", "/Applications", "/Library", "/System", "/Users",
    "/Volumes", "/private", "/private/etc", "/private/var",
))  # fmt: skip
#: Of these `find` finds much that may go.
_VARIED: Final = frozenset(
    ("/var", "/opt", "/srv", "/usr/local", "/usr/share", "/run", "/Volumes", "/private/var", "/home")
)
_A_HOME = re.compile(r"/(?:home|Users)/[^/\x00]+|/root|/var/root")
_EVERYTHING = re.compile(r"\?*\*+|\.\*|\.\?\?\*|\.?\[(?:[!^][^]]*|[^]]*a-z[^]]*)\]\*")

_DISK = re.compile(
    r"/dev/(?:[shv]d[a-z]|xvd[a-z]|nvme\d|mmcblk\d|r?disk\d|mapper/.|dm-\d|md\d|md/.|zd\d|nbd\d|sr\d|loop\d|vg[^/]*/.|"
    r"disk/by-|block/.|bcache\d|k?mem$|port$)"
)
_CONFIGURED = re.compile(
    r"(?:/private)?/etc(?:/|$)|/boot/|/s?bin/|/lib(?:32|64|x32)?/|/usr/(?!local/|src/|tmp/)[^/]+/|/proc/(?!self/fd/|\d)|/sys/|"
    r"/var/spool/cron|/var/lib/dpkg/|/System/|/Library/(?:Launch|Preferences|Security)|/opt/[^/]+/etc/"
)
_DELETED = re.compile(
    r"(?:/private)?/etc/|/boot/|/s?bin/|/lib(?:32|64|x32)?/|/usr/|/var/lib/|/var/spool/|/proc/|/sys/|/System/|/Library/"
)
_HOME_START = rf"(?:{HOME}|/home/[^/]+|/Users/[^/]+|/root)/"
_SECRETS = re.compile(
    _HOME_START
    + r"(?:\.ssh(?:/|$)|\.aws(?:/|$)|\.gnupg(?:/|$)|\.kube(?:/|$)|\.netrc$|\.pgpass$|\.my\.cnf$|\.git-credentials$|\.npmrc$|"
    r"\.pypirc$|\.docker(?:/|$)|\.config/(?:gh|gcloud|hub|op|doctl|rclone)(?:/|$)|\.azure(?:/|$)|\.terraform\.d/credentials|"
    r"\.vault-token$|\.password-store(?:/|$)|\.local/share/keyrings(?:/|$)|\.mozilla/|\.bitcoin/|Library/Keychains)"
    r"|(?:/private)?/etc/(?:shadow|gshadow|sudoers|krb5\.keytab|ssl/private)|/proc/[^/]+/environ$"
)
#: Ends of the names of files that are only examples or copies.
_COPY = r"(?:example|sample|template|dist|bak|backup|old|orig|save)\b"
_SECRET_NAMES = re.compile(
    r"(?:^|/)(?:id_(?:rsa|dsa|ecdsa|ed25519)|\.netrc|\.pgpass|credentials(?:\.json)?|[^/]*\.(?:pem|p12|pfx|keystore|kdbx)|\.env(?:\.(?!"
    + _COPY
    + r")[\w.-]+)?)$"
)
_START_FILES = re.compile(
    _HOME_START
    + r"(?:\.(?:bash|zsh|k|mk|tc|c)?(?:rc|shrc|shenv|profile|login|logout|cshrc)|\.bash_(?:profile|login|logout|aliases)|\.z(?:profile|login|logout|shenv)|"
    r"\.profile|\.xprofile|\.xsession(?:rc)?|\.xinitrc|\.pam_environment|\.inputrc|\.gitconfig|\.vimrc|\.config/(?:fish/|autostart/|git/)|Library/LaunchAgents/)"
)
_PROJECT = re.compile(r"(?:^|/)(?:\.env(?:\.(?!" + _COPY + r")[\w-]+)*|config\.ya?ml)$")
_POLICY = re.compile(
    _HOME_START + r"\.mibyan(?:/|$)|(?:^|/)\.mibyan/(?:config\.yaml|trust\.json|mibyan\.lock|plugins/|tools/)"
)


def loses_machine(arg: Arg, scope: Scope, *, found: bool = False) -> bool:
    """Whether deleting an operand with all that is in it loses the machine or a home.

    Args:
        arg: The operand.
        scope: Where it is read.
        found: Whether it is where `find` begins, which chooses.
    """
    folder = _emptied(arg)
    if folder is None or UNKNOWN in folder:
        return False
    return any(
        path == HOME or path in _SYSTEM or _A_HOME.fullmatch(path) is not None
        for path in scope.paths(folder)
        if not (found and path in _VARIED)
    )


def _emptied(arg: Arg) -> str | None:
    """The directory that an operand means the whole of; `None` if it is a pattern for some."""
    if not arg.globbed:
        return arg.text
    head, _, last = arg.text.rstrip("/").rpartition("/")
    if min(arg.active) < len(head) + ("/" in arg.text):
        return None
    return (head or ("/" if arg.text.startswith("/") else ".")) if _EVERYTHING.fullmatch(last) else None


def is_disk(path: str) -> bool:
    """Whether a path is a block device, or the machine's memory."""
    return _DISK.match(path) is not None


def is_secret(path: str) -> bool:
    """Whether a path holds credentials."""
    return _SECRETS.match(path) is not None or _SECRET_NAMES.search(path) is not None


def read_origins(path: str) -> frozenset[str]:
    """Where what is read from a path comes from."""
    return frozenset((CREDENTIAL,)) if is_secret(path) else NO_ORIGINS


def write_rule(path: str) -> str | None:
    """The rule about writing to a path; `None`: there is none."""
    rules = (
        ("block_device_write", is_disk), ("sysrq", lambda path: path == "/proc/sysrq-trigger"),
        ("policy_file_write", _POLICY.search), ("system_config_write", _CONFIGURED.match),
        ("credential_write", _SECRETS.match), ("credential_write", _START_FILES.match),
        ("project_config_write", _PROJECT.search),
    )  # fmt: skip
    return next((rule for rule, is_it in rules if is_it(path)), None)


def is_system_file(path: str) -> bool:
    """Whether a single file at a path is the system's."""
    return _DELETED.match(path) is not None
