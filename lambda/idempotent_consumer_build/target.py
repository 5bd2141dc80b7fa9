"""What a zip is built for: the runtime's Python, and one processor or any."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from packaging.tags import Tag, compatible_tags, cpython_tags

from idempotent_consumer_build import pip

# https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtimes.html: what each version runs on decides which compiled
# wheels load. Amazon Linux 2 has glibc 2.26, Amazon Linux 2023 has 2.34.
GLIBC = {"3.11": 26, "3.12": 34, "3.13": 34, "3.14": 34}
# As wheels and markers call the processors.
MACHINES = {"arm64": "aarch64", "x86_64": "x86_64"}
OLDEST_GLIBC = {"aarch64": 17, "x86_64": 5}
# The names from before wheels named the version of glibc.
LEGACY = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}


@dataclass(frozen=True)
class Target:
    """version: of the runtime's Python, as in 3.13. architecture: arm64 or x86_64, None for a zip that runs on both."""

    version: str
    architecture: str | None

    @cached_property
    def tags(self) -> tuple[Tag, ...]:
        """The tags that a wheel may have, best first."""
        python = (3, int(self.version.split(".")[1]))
        interpreter = f"cp{self.digits}"
        platforms = list(self.platforms())
        tags = list(cpython_tags(python, [interpreter], platforms)) if platforms else []
        tags += compatible_tags(python, interpreter, platforms)
        # Made by hand, for a Linux of which the name says nothing; no index has such wheels.
        if self.machine is not None:
            platforms.append(f"linux_{self.machine}")
            tags += [*cpython_tags(python, [interpreter], platforms[-1:])]
            tags += [*compatible_tags(python, interpreter, platforms[-1:])]
        # Older releases of packaging take no platforms to mean those of this machine.
        return tuple(dict.fromkeys(tag for tag in tags if platforms or tag.platform == "any"))

    @property
    def machine(self) -> str | None:
        """The processor as wheels and markers call it; None where the zip is to run on both."""
        return None if self.architecture is None else MACHINES[self.architecture]

    @property
    def digits(self) -> str:
        return self.version.replace(".", "")

    def platforms(self) -> Iterator[str]:
        """The platforms of compiled wheels, best first; none where the zip is to run on both processors."""
        machine = self.machine
        if machine is None:
            return
        for glibc in range(GLIBC[self.version], OLDEST_GLIBC[machine] - 1, -1):
            yield f"manylinux_2_{glibc}_{machine}"
            if glibc in LEGACY:
                yield f"{LEGACY[glibc]}_{machine}"

    @property
    def accepted(self) -> str:
        """For messages: which wheels there may be."""
        machine, newest = self.machine, GLIBC[self.version]
        if machine is None:
            return "py3-none-any (pure Python, to run on arm64 and on x86_64)"
        platforms = f"manylinux2014_{machine} or manylinux_2_17_{machine} to manylinux_2_{newest}_{machine}"
        return f"py3-none-any, or cp{self.digits} or abi3 for {platforms}, or for linux_{machine} in --wheels"

    def pip_options(self) -> list[str]:
        if self.architecture is None:
            return pip.pure(self.version)
        options = ["--python-version", self.version, "--implementation", "cp"]
        for abi in (f"cp{self.digits}", "abi3", "none"):
            options += ["--abi", abi]
        for platform in self.platforms():
            options += ["--platform", platform]
        return options

    def environments(self) -> list[dict[str, str]]:
        """What environment markers see, on each processor that the zip is to run on."""
        machines = [self.machine] if self.machine else list(MACHINES.values())
        return [
            {
                "extra": "",
                "implementation_name": "cpython",
                "implementation_version": self.full_version,
                "os_name": "posix",
                "platform_machine": machine,
                "platform_python_implementation": "CPython",
                "platform_release": "",
                "platform_system": "Linux",
                "platform_version": "",
                "python_full_version": self.full_version,
                "python_version": self.version,
                "sys_platform": "linux",
            }
            for machine in machines
        ]

    @property
    def full_version(self) -> str:
        """Lambda keeps its runtimes at their newest release: no comparison should take this for an old one."""
        return f"{self.version}.99"
