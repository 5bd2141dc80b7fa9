"""Puts the parts of a zip together, and refuses names of which one would hide another."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from idempotent_consumer_build.problem import CannotBuild
from idempotent_consumer_build.sources import is_compiled

# Modules that Lambda's Python runtimes bring in /var/runtime, which comes after the zip on sys.path.
RUNTIME_MODULES = frozenset(
    {
        "awslambdaric",
        "bootstrap",
        "boto3",
        "botocore",
        "dateutil",
        "jmespath",
        "runtime_client",
        "s3transfer",
        "simplejson",
        "six",
        "snapshot_restore_py",
        "urllib3",
    }
)

# Public modules that not every version has from 3.11 on: the version that was the first, or the last, to have them.
# The Python that runs this may be another one than the runtime's.
FIRST = {"annotationlib": 14, "compression": 14}
LAST = {
    **dict.fromkeys(("asynchat", "asyncore", "distutils", "imp", "smtpd"), 11),
    **dict.fromkeys(("aifc", "audioop", "cgi", "cgitb", "chunk", "crypt", "imghdr", "lib2to3", "mailcap"), 12),
    **dict.fromkeys(("msilib", "nis", "nntplib", "ossaudiodev", "pipes", "sndhdr", "spwd", "sunau"), 12),
    **dict.fromkeys(("telnetlib", "uu", "xdrlib"), 12),
}


# The packages that bring these modules, where the names differ.
BROUGHT_BY = {
    "dateutil": "python-dateutil",
    "runtime_client": "awslambdaric",
    "snapshot_restore_py": "snapshot-restore-py",
}


class Origin(Enum):
    LIBRARY = "library"
    FOLDER = "folder"
    REQUIREMENT = "requirement"


@dataclass(frozen=True)
class Part:
    """Files that come from one place. label: as a message names the place. package: the requirement's name."""

    label: str
    origin: Origin
    files: Mapping[str, bytes]
    package: str = ""

    @property
    def remedy(self) -> str:
        return {
            Origin.LIBRARY: "",
            Origin.FOLDER: "rename it",
            Origin.REQUIREMENT: f"take {self.label} out of the requirements, or pin another version",
        }[self.origin]


@dataclass(frozen=True)
class Module:
    """What a name at the root is. path: a file of it. whole: not a folder that others may add to. code: it has some."""

    path: str
    whole: bool
    code: bool


def merged(parts: Sequence[Part], version: str) -> dict[str, bytes]:
    """The files of all parts. version: of the function's Python, as in 3.13."""
    modules = {part.label: root_modules(part.files) for part in parts}
    for part in parts:
        if part.origin is not Origin.LIBRARY:
            refuse_hiding_python(part, modules[part.label], version)
            refuse_hiding_the_runtime(part, modules[part.label])
        if part.origin is Origin.FOLDER:
            refuse_hidden_modules(part)
    for index, part in enumerate(parts):
        for other in parts[:index]:
            refuse_shared_modules(other, modules[other.label], part, modules[part.label])
    return merged_files(parts)


def refuse_hiding_python(part: Part, modules: Mapping[str, Module], version: str) -> None:
    for name in sorted(modules.keys() & standard_library(version)):
        if modules[name].code:
            raise CannotBuild(
                f"{modules[name].path} of {part.label} would hide Python's own module {name}, as the zip comes first "
                f"on sys.path: {part.remedy}"
            )


def refuse_hiding_the_runtime(part: Part, modules: Mapping[str, Module]) -> None:
    for name in sorted(modules.keys() & RUNTIME_MODULES):
        if modules[name].code and part.package != BROUGHT_BY.get(name, name):
            pin = ", or pin the package in requirements.txt to ship a version of it" if not part.package else ""
            raise CannotBuild(
                f"{modules[name].path} of {part.label} would hide {name}, which the Lambda runtime brings: "
                f"{part.remedy}{pin}"
            )


def refuse_hidden_modules(part: Part) -> None:
    for name in sorted(part.files):
        package = f"{name.removesuffix('.py')}/__init__.py"
        if name.endswith(".py") and package in part.files:
            raise CannotBuild(f"{package} of {part.label} would hide {name} beside it: rename one of them")


def refuse_shared_modules(one: Part, ones: Mapping[str, Module], two: Part, twos: Mapping[str, Module]) -> None:
    requirements = {one.origin, two.origin} == {Origin.REQUIREMENT}
    for name in sorted(ones.keys() & twos.keys()):
        # Packages of one namespace may share a folder, as pip lets them, but no module may stand beside it.
        hides = differ(ones[name], twos[name]) if requirements else ones[name].whole or twos[name].whole
        if hides:
            raise collision(one, ones[name].path, two, twos[name].path)


def differ(one: Module, two: Module) -> bool:
    """Whether one is a module and the other a folder with modules."""
    return one.code and two.code and ("/" in one.path) != ("/" in two.path)


def merged_files(parts: Sequence[Part]) -> dict[str, bytes]:
    """All files, none of which may stand for another one, not on disks either that take small letters for large."""
    members: dict[str, bytes] = {}
    # Each file and folder by its name without the difference of letters: its spelling, whether a file, and its part.
    seen: dict[str, tuple[str, bool, Part]] = {}
    for part in parts:
        for name, data in part.files.items():
            for path, is_file in with_folders(name):
                spelling, was_file, owner = seen.setdefault(folded(path), (path, is_file, part))
                same = (spelling, was_file) == (path, is_file)
                if not same or (is_file and owner is not part and not is_one(owner, part, name)):
                    raise collision(owner, spelling, part, path)
            members[name] = data
    return members


def is_one(one: Part, two: Part, name: str) -> bool:
    """Packages of one namespace may bring the same file, as pip lets them."""
    return {one.origin, two.origin} == {Origin.REQUIREMENT} and one.files[name] == two.files[name]


def collision(one: Part, ones: str, two: Part, twos: str) -> CannotBuild:
    remedies = dict.fromkeys(part.remedy for part in (one, two) if part.remedy)
    advice = f": {', or '.join(remedies)}" if remedies else ""
    if one is two:
        return CannotBuild(f"{twos} and {ones} of {one.label} are one name where letter case does not count{advice}")
    return CannotBuild(f"{twos} of {two.label} collides with {ones} of {one.label}{advice}")


def with_folders(name: str) -> Iterable[tuple[str, bool]]:
    parts = name.split("/")
    for length in range(1, len(parts)):
        yield "/".join(parts[:length]), False
    yield name, True


def folded(path: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())


def root_modules(files: Iterable[str]) -> dict[str, Module]:
    """What can be imported, or stands in the way of an import, by its name at the root."""
    found: dict[str, Module] = {}
    for path in sorted(files):
        root, _, rest = path.partition("/")
        code = path.endswith(".py") or is_compiled(path)
        if not rest and not code and root != "bootstrap":
            continue
        name = root if rest else root.partition(".")[0]
        module = Module(path, whole=not rest or (code and rest.startswith("__init__.")), code=code or not rest)
        before = found.get(name)
        if before is None or (module.whole, module.code) > (before.whole, before.code):
            found[name] = module
    return found


def standard_library(version: str) -> frozenset[str]:
    """The names of the modules that come with a version of Python."""
    minor = int(version.split(".")[1])
    others = {name for name, first in FIRST.items() if minor < first}
    others |= {name for name, last in LAST.items() if minor > last}
    return (sys.stdlib_module_names | FIRST.keys() | LAST.keys()) - others
