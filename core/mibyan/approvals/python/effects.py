"""What functions do that scripts call: tables of dotted names, as `Names` resolves them."""

from __future__ import annotations

import re
from typing import Final

#: Modules of which an alias is as good as themselves: one that gets out of sight takes everything with it.
SENSITIVE: Final = frozenset((
    "os", "posix", "nt", "subprocess", "shutil", "builtins", "importlib", "pty", "ctypes", "socket", "runpy", "io", "sys", "pickle", "marshal",
    "posixsubprocess",
))  # fmt: skip
#: Those that mustn't be passed on as a whole.
ESCAPING: Final = frozenset(
    (
        "os",
        "subprocess",
        "shutil",
        "builtins",
        "importlib",
        "pty",
        "runpy",
        "socket",
        "pickle",
        "marshal",
        "posixsubprocess",
    )
)

#: Run a program; the position of what is run.
COMMANDS: Final = re.compile(
    r"(?:os|posix|nt)\.(?:system|popen\d?|startfile|posix_spawnp?|exec(?:v|ve|vp|vpe|l|le|lp|lpe)|spawn(?:v|ve|vp|vpe|l|le|lp|lpe)|fork|forkpty)"
    r"|subprocess\.(?:run|call|check_call|check_output|Popen|getoutput|getstatusoutput)|_?posixsubprocess\.fork_exec"
    r"|commands\.\w+|pty\.(?:spawn|fork)|pexpect\.(?:spawn|run|spawnu)|asyncio\.(?:create_subprocess_(?:shell|exec)|subprocess\.\w+)"
    r"|distutils\.spawn\.spawn|sh\.\w+|plumbum\.\w+|fabric\.\w+|invoke\.run|webbrowser\.\w+"
)
#: What is executed is its first argument, and further ones are a list's items.
SPREAD: Final = re.compile(r"os\.(?:execl\w*|spawnl\w*)|asyncio\.create_subprocess_exec")
#: A mode or a path comes before what is executed.
SECOND: Final = re.compile(r"os\.(?:spawn\w+|execv\w*|posix_spawnp?)")
#: Run text as Python.
CODE: Final = re.compile(
    r"builtins\.(?:eval|exec|compile)|timeit\.(?:timeit|repeat|Timer)|runpy\.\w+|code\.\w+|codeop\.\w+|c?Profile\.run(?:ctx)?|pdb\.run\w*|bdb\.\w+|trace\.Trace"
    r"|doctest\.\w+|execfile|types\.(?:FunctionType|CodeType)|importlib\.(?:util\.\w+|machinery\.\w+|reload)|zipimport\.\w+"
    r"|imp\.load_\w+|cProfile\.run(?:ctx)?"
)
IMPORTERS: Final = frozenset(("builtins.__import__", "importlib.import_module", "importlib.__import__"))
NATIVE: Final = re.compile(r"(?:_?ctypes|_?cffi|_?cffi_backend|_testcapi|cython|numba)(?:\.|$)")
UNPICKLE: Final = re.compile(
    r"_?c?pickle\.(?:loads?|Unpickler|_?\w*Unpickler)|marshal\.loads?|shelve\.open|dill\.loads?|cloudpickle\.loads?|joblib\.load|jsonpickle\.decode"
    r"|yaml\.(?:unsafe_load(?:_all)?|full_load(?:_all)?|load(?:_all)?|UnsafeLoader)|torch\.load|pandas\.read_pickle"
)
SOCKETS: Final = re.compile(
    r"socket\.(?:socket|create_connection|create_server|socketpair|fromfd)|_socket\.socket|smtplib\.\w+|ftplib\.\w+|telnetlib\.\w+|paramiko\.\w+|socketserver\.\w+"
    r"|http\.server\.\w+|asyncio\.(?:open_connection|start_server|open_unix_connection)|poplib\.\w+|imaplib\.\w+|xmlrpc\.\w+\.\w+|websockets?\.\w+"
)
#: What comes from, or goes to, the network.
NETWORK: Final = re.compile(
    SOCKETS.pattern
    + r"|urllib\.request\.\w+|urllib2\.\w+|http\.client\.\w+|requests\.\w+|httpx\.\w+|aiohttp\.\w+|urllib3\.\w+|pycurl\.\w+"
)
DECODERS: Final = re.compile(
    r"base64\.\w+|codecs\.\w+|binascii\.\w+|zlib\.\w+|gzip\.\w+|bz2\.\w+|lzma\.\w+|builtins\.(?:chr|bytes|bytearray)"
)

#: Deletes; the argument is a path.
DELETES: Final = re.compile(r"os\.(?:remove|unlink|rmdir)|pathlib\.(?:Posix)?Path\.(?:unlink|rmdir)")
DELETES_TREES: Final = re.compile(r"shutil\.rmtree|os\.removedirs|distutils\.dir_util\.remove_tree|send2trash\.\w+")
#: Write; the positions, and the keywords, of the paths they write to.
WRITES: Final[tuple[tuple[re.Pattern[str], tuple[int | str, ...]], ...]] = (
    (re.compile(r"shutil\.(?:copy|copy2|copyfile|copytree|copymode|copystat|move)"), (1, "dst")),
    (re.compile(r"shutil\.(?:unpack_archive|chown)"), (1, "extract_dir")),
    (re.compile(r"os\.(?:rename|renames|replace|link|symlink)"), (1, "dst")),
    (re.compile(r"os\.(?:truncate|mkfifo|mknod|mkdir|makedirs|lchmod|chmod|chown|lchown|setxattr|utime)"), (0, "path")),
    (re.compile(r"urllib\.request\.urlretrieve"), (1, "filename")),
    (re.compile(r"pathlib\.(?:Posix)?Path\.(?:write_text|write_bytes|touch|mkdir|symlink_to|hardlink_to|chmod)"), (0, "self")),
    (re.compile(r"pathlib\.(?:Posix)?Path\.(?:rename|replace)"), (1, "target")),
    (re.compile(r"logging\.(?:handlers\.\w+|FileHandler)|sqlite3\.connect|zipfile\.ZipFile|tarfile\.open"), (0, "filename")),
)  # fmt: skip
#: Open a file; by mode.
OPENS: Final = frozenset(("builtins.open", "io.open", "_io.open", "_io.FileIO", "io.FileIO", "codecs.open", "gzip.open", "bz2.open", "lzma.open", "os.open",
                          "posix.open", "aiofiles.open", "os.fdopen"))  # fmt: skip
#: Methods of paths: what they do, on whatever they are called.
PATH_WRITES: Final = frozenset(
    ("write_text", "write_bytes", "touch", "mkdir", "symlink_to", "hardlink_to", "link_to", "chmod", "lchmod")
)
PATH_DELETES: Final = frozenset(("unlink", "rmdir"))
#: Of these, the ones that nothing but a path has.
PATH_ONLY: Final = frozenset(("write_text", "write_bytes", "unlink", "symlink_to", "hardlink_to"))
#: What the methods begin with that write to the path that they are given.
SAVING: Final = ("to_", "save", "extract", "dump")
#: Methods that run a program, whatever they are called on.
COMMAND_METHODS: Final = frozenset(
    ("system", "popen", "Popen", "check_output", "check_call", "getoutput", "getstatusoutput")
)

#: Attributes that lead from any object to everything.
REFLECTION: Final = frozenset((
    "__subclasses__", "__globals__", "__builtins__", "__code__", "__mro__", "__bases__", "__base__", "__getattribute__", "__loader__", "__spec__",
    "f_globals", "f_locals", "f_builtins", "gi_frame", "cr_frame", "ag_frame", "tb_frame", "f_back", "__reduce__", "__reduce_ex__", "__closure__", "__import__",
    "_getframe", "func_globals", "__self__", "__wrapped__",
))  # fmt: skip

#: Built-in functions that a script may call without importing anything.
BUILTINS: Final = frozenset((
    "eval", "exec", "compile", "open", "getattr", "setattr", "vars", "globals", "locals", "__import__", "chr", "bytes", "bytearray", "str", "breakpoint",
    "input", "map", "filter", "sorted", "list", "tuple", "reversed", "set", "iter", "next",
))  # fmt: skip
