"""`DANGEROUS_PATTERNS`: the rules as the seeds have them, regular expressions on a command's text (seed 000).

A view for people and for programs that only search text. Nothing is decided by it: `evaluate_command` judges the parsed
command, which sees through quotes, wrappers and variables, and knows data from code.
"""

from __future__ import annotations

from typing import Final

from mibyan.approvals.rules.book import RULES

_RECURSIVE = r"\brm\s+(?:\S+\s+)*?-(?:\w*[rR]\w*|-recursive)\b"
_SYSTEM = r"(?:/|/\*|/(?:bin|boot|dev|etc|home|lib\w*|opt|proc|root|sbin|srv|sys|usr|var)/?\*?)"
_DISK = r"/dev/(?:[shv]d[a-z]|xvd[a-z]|nvme\d|mmcblk\d|disk\d)"

_PATTERNS: Final[dict[str, str]] = {
    "root_delete": _RECURSIVE + r".*\s['\"]?" + _SYSTEM + r"['\"]?(?:\s|$)",
    "home_delete": _RECURSIVE + r".*\s['\"]?(?:~|\$\{?HOME\}?)/?\*?['\"]?(?:\s|$)",
    "recursive_delete": _RECURSIVE,
    "find_delete": r"\bfind\b.*(?:-delete\b|-exec(?:dir)?\s+\S*rm\b)|\bxargs\b.*\brm\b|\bfd\b.*-[xX]\s+rm\b",
    "system_path_delete": r"\b(?:rm|unlink)\s+(?:-\w+\s+)*/(?:etc|usr|bin|sbin|boot|lib\w*)/",
    "credential_delete": r"\b(?:rm|shred|unlink)\b.*~/\.(?:ssh|aws|gnupg|netrc)",
    "system_config_write": r"(?:>\s*|\btee\s+(?:-a\s+)?|\bsed\s+-i\b.*\s)/etc/|\bcrontab\s+(?!-l)|\biptables\s+-[FXPDIA]\b",
    "project_config_write": r"(?:>\s*|\btee\s+|\b(?:cp|mv|install)\s+\S+\s+)\S*(?:\.env\b|config\.ya?ml\b)",
    "permissions": r"\bchmod\s+(?:-\w+\s+)*(?:0?777|[2467]\d{3}|[ugoa]*[oa]\+?\w*w|\w*\+\w*s)|\bchown\s+-R\b",
    "made_executable_and_run": r"\bchmod\s+\+x\s+(\S+)\s*(?:&&|;)\s*\./",
    "format_fs_file": r"\bmkfs(?:\.\w+)?\b",
    "disk_copy": r"\bdd\b.*\b(?:if|of)=",
    "credential_write": r"(?:>\s*|\btee\s+|\b(?:cp|mv|ln)\b.*\s)~/\.(?:ssh/|aws/|netrc|kube/|gnupg/|bashrc|zshrc|profile|bash_profile)|\bssh-copy-id\b",
    "credential_exfil": r"(?:\.ssh/id_\w+|\.aws\b|\.env\b).*\|\s*(?:curl|nc|wget)\b|\bcurl\b.*@\S*(?:\.ssh|\.aws|\.env)",
    "cloud_metadata": r"169\.254\.169\.254|metadata\.google\.internal",
    "policy_file_write": r">\s*~/\.mibyan/|\bmibyan\s+(?:config\s+set|plugins\s+(?:trust|enable|disable|install|uninstall))\b",
    "format_fs": r"\bmkfs(?:\.\w+)?\b.*" + _DISK + r"|\bwipefs\s+-a\b|\bparted\b.*\bmklabel\b",
    "block_device_write": r"\bdd\b.*\bof=" + _DISK + r"|>\s*" + _DISK + r"|\bshred\b.*" + _DISK,
    "volume_delete": r"\b(?:lv|vg|pv)remove\b|\bz(?:pool|fs)\s+destroy\b",
    "shutdown": r"(?:^|[;&|]\s*|\bsudo\s+)(?:shutdown|reboot|halt|poweroff)\b|\bsystemctl\s+(?:reboot|poweroff|halt)\b|\binit\s+[06]\b",
    "sysrq": r"/proc/sysrq-trigger",
    "fork_bomb": r"(\S+)\s*\(\)\s*\{\s*\1\s*\|\s*\1\s*&\s*\}|fork\s+while\s+fork",
    "kill_all": r"\bkill\s+(?:-\w+\s+)*(?:--\s+)?-1\s*(?:$|[;&|])|\bkillall5\b",
    "process_kill": r"\bp?kill(?:all)?\s+-(?:9|KILL|SIGKILL|s\s+9)\b|\bkill\b.*(?:\$\(|`)\s*(?:pgrep|pidof)\b|\bfuser\s+-k\b",
    "self_termination": r"\b(?:pkill|killall)\b.*\bmibyan\b|\bmibyan\s+gateway\s+(?:stop|restart)\b",
    "service": r"\bsystemctl\b.*\b(?:stop|restart|disable|mask)\b|\bservice\s+\S+\s+(?:stop|restart)\b|\bpm2\s+(?:delete|stop|kill)\b",
    "container_lifecycle": r"\b(?:docker|podman)(?:\s+compose|-compose)?\s+(?:stop|restart|kill|rm|down)\b",
    "infra_destructive": r"\bterraform\s+destroy\b|\bkubectl\s+delete\b|\baws\s+s3\s+r[bm]\b|\bhelm\s+uninstall\b",
    "package_uninstall": r"\b(?:npm|pnpm|yarn|pip3?|brew|apt(?:-get)?|dnf|yum)\b.*\b(?:uninstall|remove|purge)\b",
    "git_destructive": r"\bgit\b.*\b(?:push\b.*(?:--force|-f\b)|reset\b.*--hard|clean\s+-\w*f|branch\s+-D)",
    "sql": r"(?i)\bDROP\s+(?:TABLE|DATABASE)\b|\bTRUNCATE\s+TABLE\b|\bDELETE\s+FROM\b(?!.*\bWHERE\b)",
    "remote_exec": r"\b(?:curl|wget)\b.*\|\s*(?:sudo\s+)?(?:ba|z|da)?sh\b|\b(?:ba)?sh\s+<\(\s*(?:curl|wget)\b",
    "decode_exec": r"\bbase64\s+(?:-d|--decode)\b.*\|\s*(?:ba)?sh\b",
    "reverse_shell": r"\bnc\b.*\s-e\s|/dev/tcp/",
    "inline_script": r"\b(?:python[23]?|perl|ruby|node|php)\s+(?:-\w+\s+)*-[ec]\b",
    "exec_flag": r"\brg\b.*--pre\b|\btar\b.*--(?:to-command|checkpoint-action)",
    "opaque_exec": r"\b(?:eval|(?:ba)?sh\s+-c)\s+['\"]?\$",
    "unparsable": r"^[^'\n]*(?:'[^'\n]*'[^'\n]*)*'[^'\n]*$",
    "invisible_chars": "[\u200b-\u200f\u2060-\u2064\ufeff\u00ad]",
    "sudo_stdin": r"\bsudo\s+(?:-\w+\s+)*-[SAs]\b",
    "windows": r"(?i)\btaskkill\s+/F\b|\breg\s+delete\b|\bvssadmin\s+delete\b|\bRemove-Item\b.*-Recurse",
}

#: `(regular expression, description)` of each rule, the worst first.
DANGEROUS_PATTERNS: Final[list[tuple[str, str]]] = [
    (_PATTERNS[rule.id], rule.description) for rule in sorted(RULES.values(), key=lambda rule: rule.level != "hardline")
]
