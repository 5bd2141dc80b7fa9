"""The wheel of each of a user's requirements that fits the target."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from idempotent_consumer_build import pip
from idempotent_consumer_build.problem import CannotBuild, shown
from idempotent_consumer_build.requirements import Pin
from idempotent_consumer_build.target import Target


@dataclass(frozen=True)
class Candidate:
    """A wheel of the right name and version. rank: of its tag among those accepted, None if it fits none."""

    path: Path
    rank: int | None
    build: tuple[int, str] | tuple[()]
    tags: str
    right_hash: bool

    @property
    def fits(self) -> bool:
        return self.rank is not None and self.right_hash

    @property
    def order(self) -> tuple[int, tuple[int, str] | tuple[()], str]:
        """As pip prefers: the best tag, then the latest build."""
        return (-(self.rank or 0), self.build, self.path.name)


def chosen_wheels(pins: Sequence[Pin], folder: Path, target: Target) -> dict[Pin, Path]:
    """The best wheel of each pin: from the folder, or through pip where none there fits."""
    folder.mkdir(parents=True, exist_ok=True)
    missing = [pin for pin in pins if not best(pin, folder, target)]
    if missing:
        fetch(missing, folder, target)
    chosen = {pin: best(pin, folder, target) for pin in pins}
    for pin, path in chosen.items():
        if path is None:
            raise CannotBuild(f"pip brought no wheel of {pin} that fits{unfit(pin, folder, target)}")
    return {pin: path for pin, path in chosen.items() if path is not None}


def best(pin: Pin, folder: Path, target: Target) -> Path | None:
    fitting = [candidate for candidate in candidates(pin, folder, target) if candidate.fits]
    return max(fitting, key=lambda candidate: candidate.order).path if fitting else None


def candidates(pin: Pin, folder: Path, target: Target) -> Iterator[Candidate]:
    ranks = {tag: rank for rank, tag in enumerate(target.tags)}
    for path in sorted(folder.glob("*.whl")):
        try:
            name, version, build, tags = parse_wheel_filename(path.name)
        except InvalidWheelFilename:
            continue
        if (name, version) == (pin.name, pin.version):
            fitting = [ranks[tag] for tag in tags if tag in ranks]
            right_hash = not pin.hashes or hashlib.sha256(path.read_bytes()).hexdigest() in pin.hashes
            named = "-".join(path.name.removesuffix(".whl").split("-")[-3:])
            yield Candidate(path, min(fitting, default=None), build, named, right_hash)


def fetch(pins: Sequence[Pin], folder: Path, target: Target) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        # A file of our own, since pip would evaluate the markers for the Python that runs it.
        requirements = Path(scratch, "requirements.txt")
        for hashed in (True, False):
            asked = [pin for pin in pins if bool(pin.hashes) == hashed]
            if not asked:
                continue
            requirements.write_text("".join(f"{pin.line}\n" for pin in asked), "utf-8")
            names = ", ".join(map(str, asked))
            try:
                pip.download(requirements, folder, target.pip_options(), names, hashed=hashed)
            except pip.NotFetched as problem:
                raise CannotBuild(explained(problem, asked, folder, target)) from problem


def explained(problem: pip.NotFetched, pins: Sequence[Pin], folder: Path, target: Target) -> str:
    """What pip said, and what may be behind it."""
    wrong = "".join(unfit(pin, folder, target) for pin in pins)
    if problem.package is None:
        return f"{problem}{wrong}"
    return (
        f"the index has no wheel of {problem.package} that fits; accepted: {target.accepted}{wrong}\n"
        f"{advice(problem.package, target)}\npip said:\n{problem.reason}"
    )


def advice(package: str, target: Target) -> str:
    lines = []
    if target.architecture is None:
        lines.append("If it has compiled wheels, build for one processor: --architecture arm64, or x86_64.")
    lines.append(
        "If it comes as a source archive only, make a wheel of it (for compiled code, on the function's platform) and "
        f"give its folder with --wheels: python -m pip wheel --no-deps {package} --wheel-dir FOLDER"
    )
    return "\n".join(lines)


def unfit(pin: Pin, folder: Path, target: Target) -> str:
    """A line for each wheel in the folder that was passed over."""
    lines = []
    for candidate in candidates(pin, folder, target):
        if candidate.rank is None:
            lines.append(f"\n{shown(candidate.path)} is for {candidate.tags}; accepted: {target.accepted}")
        elif not candidate.right_hash:
            lines.append(f"\n{shown(candidate.path)} has none of the hashes that are pinned")
    return "".join(lines)
