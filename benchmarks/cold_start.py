"""The cold start as deployed, without the sandbox and the interpreter: importing the handler, with its clients.

A fresh process on the unpacked zip, which is read-only, so that Python has just the bytecode that the zip ships;
boto3 and botocore are compiled, as in the runtime. With AWS_LAMBDA_FUNCTION_NAME set, as Lambda does, both sides make
their clients while they are imported.
"""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.sides import HERE, Runtime, Side, run_python


@dataclass(frozen=True)
class ColdStart:
    """Milliseconds, on the clock and of CPU time."""

    wall: float
    cpu: float


def cold_start(runtime: Runtime, side: Side, module: str | None = None) -> ColdStart:
    """The import of the side's handler, or of another module in its place."""
    environment = side.environment(runtime, HERE)
    printed = run_python(runtime, environment, [str(HERE / "probe.py"), module or side.module])
    return ColdStart(*map(float, printed.split()))
