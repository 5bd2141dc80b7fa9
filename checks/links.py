"""Links and paths in documents: what they point to is there. Nothing is fetched."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from urllib.parse import unquote, urlsplit

from checks.markdown import Page, page
from checks.problem import at
from checks.tree import Tree

# A file by its name alone, such as `iam.tf`. A Python file may be one that the reader writes.
_FILE = re.compile(r"[\w*-][\w.*-]*\.(?:hcl|md|svg|tf|toml)")
_PATH = re.compile(r"[\w.*-]+(?:/[\w.*-]+)*/?")
_HOST = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}")
# Reserved for examples by RFC 2606 and RFC 6761; any other may come to belong to someone.
_EXAMPLES = re.compile(r"(?:.+\.)?example(?:\.com|\.net|\.org)?")
_LOCAL = ("localhost", "127.0.0.1")


def problems(tree: Tree) -> list[str]:
    """What points to nothing, in all Markdown files."""
    pages = {path: page(tree.texts[path]) for path in tree.matching("*.md")}
    return [problem for path in pages for problem in _problems_of(path, pages, tree)]


def _problems_of(path: str, pages: dict[str, Page], tree: Tree) -> Iterator[str]:
    for line, target in pages[path].links:
        if what := link_problem(path, target, pages, tree):
            yield at(path, line, what)
    for line, code in pages[path].codes:
        for word in code.split():
            if what := path_problem(path, word, tree):
                yield at(path, line, what)


def link_problem(path: str, target: str, pages: dict[str, Page], tree: Tree) -> str | None:
    """What is wrong with a link of the page `path`, if anything."""
    url = urlsplit(target)
    if url.scheme == "mailto":
        return None
    if url.scheme or url.netloc:
        return _outside_problem(target)
    place = posixpath.normpath(posixpath.join(posixpath.dirname(path), unquote(url.path))) if url.path else path
    if not tree.exists(place):
        return f"{target} points to {place}, which does not exist: correct the link"
    if url.fragment and place in pages and unquote(url.fragment) not in pages[place].anchors:
        return f"{target} points to a heading that {place} does not have: correct what stands behind the #"
    return None


def _outside_problem(target: str) -> str | None:
    url = urlsplit(target)
    host = url.hostname or ""
    if host in _LOCAL:
        return None
    if url.scheme != "https":
        return f"{target} is not https: write https"
    if not _HOST.fullmatch(host) and not _EXAMPLES.fullmatch(host):
        return f"{target} names no host: correct it"
    if "example" in host.split(".") and not _EXAMPLES.fullmatch(host):
        return f"{target} is a host that can belong to someone: use example.com"
    return None


def path_problem(path: str, word: str, tree: Tree) -> str | None:
    """What is wrong with a word in backticks that looks like a path of the repository."""
    word = re.sub(r":\d+$", "", word.strip("`,;:()'\"").removeprefix("./"))
    if _FILE.fullmatch(word):
        names = (posixpath.basename(other) for other in (*tree.texts, *tree.binaries))
        found = any(fnmatchcase(name, word) for name in names)
    elif "/" in word and _PATH.fullmatch(word) and word.partition("/")[0] in tree.folders:
        found = _exists(word.rstrip("/"), tree)
    else:
        return None
    return None if found else f"`{word}` looks like a path, but there is no such file: correct it"


def _exists(pattern: str, tree: Tree) -> bool:
    places = (*tree.texts, *tree.binaries, *tree.folders)
    return tree.exists(pattern) or ("*" in pattern and any(fnmatchcase(place, pattern) for place in places))
