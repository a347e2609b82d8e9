"""File systems, block devices and volumes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from mibyan.approvals.paths import is_disk
from mibyan.approvals.shell.options import Options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mibyan.approvals.rules.checks import Checker, Found
    from mibyan.approvals.shell.call import Call
    from mibyan.approvals.shell.values import Arg

_MAKERS: Final = re.compile(r"mkfs(?:\.\w+)?|mke2fs|mkdosfs|mkntfs|mkexfatfs|newfs(?:_\w+)?|mkreiserfs|mkudffs")


def is_maker(name: str) -> bool:
    """Whether a program makes file systems."""
    return _MAKERS.fullmatch(name) is not None


def _disks(call: Call, args: list[Arg] | None = None) -> list[Arg]:
    return [arg for arg in (call.args[1:] if args is None else args) if is_disk(call.scope.path(arg.text))]


def make(call: Call) -> Iterator[Found]:
    """`mkfs` and its like."""
    if "-n" in call.words and call.name in {"mke2fs", "mkfs.ext4", "mkfs.ext3", "mkfs.ext2"}:
        return
    disks = _disks(call)
    yield from (("format_fs", arg.span) for arg in disks)
    if not disks and any(not word.startswith("-") for word in call.words):
        yield "format_fs_file", call.span


def _if_disk(rule: str, *, unless: tuple[str, ...] = (), only: tuple[str, ...] = ()) -> Checker:
    """A rule about a program that changes the disk it is given."""

    def check(call: Call) -> Iterator[Found]:
        words = call.words
        if any(word in unless for word in words) or (only and not any(word.startswith(only) for word in words)):
            return
        yield from ((rule, arg.span) for arg in _disks(call))

    return check


def _parted(call: Call) -> Iterator[Found]:
    if any(
        word in {"mklabel", "mktable", "mkpart", "rm", "resizepart", "rescue", "mkfs", "mkpartfs"}
        for word in call.words
    ):
        yield from (("format_fs", arg.span) for arg in _disks(call) or [call.args[0]])


def _fdisk(call: Call) -> Iterator[Found]:
    options = Options(call.args[1:], tuple("bCHSuwWBtoxN"))
    if call.stdin.given and not options.has("l", "list", "d", "dump", "x", "s", "p"):
        yield from (("format_fs", arg.span) for arg in _disks(call))


def _sgdisk(call: Call) -> Iterator[Found]:
    reading = (
        "-p",
        "-i",
        "-v",
        "-l",
        "-L",
        "-O",
        "-b",
        "--print",
        "--info",
        "--verify",
        "--backup",
        "-A",
        "-D",
        "-E",
        "-f",
        "-F",
    )
    if not all(word.startswith(reading) or not word.startswith("-") for word in call.words):
        yield from (("format_fs", arg.span) for arg in _disks(call))


def _diskutil(call: Call) -> Iterator[Found]:
    verb = call.words[0].lower() if call.words else ""
    if verb.startswith(
        ("erase", "partition", "zero", "random", "reformat", "secureerase", "resize", "split", "merge")
    ) or (
        verb in {"apfs", "cs", "corestorage", "ar", "appleraid"}
        and any(word.lower().startswith(("delete", "erase")) for word in call.words[1:])
    ):
        yield "format_fs", call.span


def _cryptsetup(call: Call) -> Iterator[Found]:
    if any(
        word in {"luksFormat", "erase", "luksErase", "reencrypt", "luksKillSlot", "luksRemoveKey"}
        for word in call.words
    ):
        yield "format_fs", call.span


def _verbs(rule: str, *verbs: str) -> Callable[[Call], Iterator[Found]]:
    def check(call: Call) -> Iterator[Found]:
        if not verbs or any(word in verbs for word in call.words):
            yield rule, call.span

    return check


def _zpool(call: Call) -> Iterator[Found]:
    yield from _verbs("volume_delete", "destroy", "labelclear")(call)
    if call.words[:1] in (["create"], ["add"], ["replace"]) and "-n" not in call.words:
        yield from (("format_fs", arg.span) for arg in _disks(call))


CHECKS: Final[dict[str, Checker]] = {
    "mkswap": _if_disk("format_fs"), "wipefs": _if_disk("format_fs", only=("-a", "--all", "-o", "--offset", "-fa", "-af"), unless=("-n", "--no-act")),
    "blkdiscard": _if_disk("block_device_write"), "parted": _parted, "fdisk": _fdisk, "cfdisk": _fdisk, "gdisk": _fdisk,
    "sfdisk": _if_disk("format_fs", unless=("-l", "-d", "--list", "--dump", "-V", "--verify", "-s", "-J", "--json", "-n", "--no-act")), "sgdisk": _sgdisk,
    "diskutil": _diskutil, "cryptsetup": _cryptsetup, "hdparm": _verbs("format_fs", "--security-erase", "--security-erase-enhanced", "--trim-sector-ranges", "--make-bad-sector"),
    "nvme": _verbs("format_fs", "format", "sanitize", "write-zeroes", "delete-ns"), "badblocks": _if_disk("block_device_write", only=("-w",)),
    "mdadm": _verbs("format_fs", "--zero-superblock", "--create", "-C"), "pvcreate": _if_disk("format_fs"), "vgcreate": _if_disk("format_fs"), "dmsetup": _verbs("volume_delete", "remove", "remove_all", "wipe_table"),
    "lvremove": _verbs("volume_delete"), "vgremove": _verbs("volume_delete"), "pvremove": _verbs("volume_delete"), "lvreduce": _verbs("volume_delete"),
    "zpool": _zpool, "zfs": _verbs("volume_delete", "destroy", "rollback"), "btrfs": _verbs("volume_delete", "delete"),
    "partx": _verbs("volume_delete", "-d", "--delete"), "tune2fs": _if_disk("format_fs_file"), "fsck": _if_disk("format_fs_file", only=("-y", "-f")),
    "dd_rescue": _if_disk("block_device_write"), "ddrescue": _if_disk("block_device_write"), "partclone.restore": _if_disk("block_device_write"), "flashrom": _verbs("block_device_write", "-w", "--write", "-E", "--erase"),
}  # fmt: skip
