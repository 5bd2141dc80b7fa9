"""Rules for what may not be written, because it breaks elsewhere: another partition, another provider, another plan."""

from __future__ import annotations

import re
from collections.abc import Iterator

from checks.hcl.module import Module
from checks.hcl.source import Block, File
from checks.problem import at

# Each text, with what is wrong and what to do.
TEXTS = {
    r"\barn:aws[a-z-]*:": "an ARN of one partition does not hold in China, GovCloud or the EU's own: "
    "take another resource's ARN, or data.aws_partition",
    r"amazonaws\.com\.cn|\.api\.aws\b|https?://[^\"\s]*amazonaws\.com": "a host's DNS suffix belongs to a partition: "
    "take it from a resource, or from data.aws_partition",
    r"\b(?:plan)?timestamp\(\)": "with the time of the plan each plan shows a change: leave it out",
    r"\buuid\(\)": "with a random value each plan shows a change: leave it out",
    r"(?<![0-9A-Za-z])[0-9]{12}(?![0-9A-Za-z])": "this looks like an account's id: take it from a variable or an ARN",
    r"\b(?:us-gov|us-iso[a-z]?|[a-z]{2})-(?:north|south|central)?(?:east|west|north|south|central)-[1-9](?![0-9])": (
        "a Region is written out: it is the provider's to say"
    ),
    r"(?<![\w.-])(?:data\.)?aws_region\.": "aws_region has its attribute as name in provider 5 and as region in 6: "
    "take the Region from an ARN",
    r"(?<![\w.-])(?:data\.)?aws_s3_bucket\.\w+(?:\[[^]]*\])?\.region\b": "a bucket's region is bucket_region in "
    "provider 6: take the Region from an ARN",
}
# Arguments of the resource types used here that provider 6 takes away or warns of, with what there is instead.
# Its upgrade guide names no other of them.
INSTEAD = {
    ("aws_iam_role", "inline_policy"): "aws_iam_role_policy",
    ("aws_iam_role", "managed_policy_arns"): "aws_iam_role_policy_attachment",
    ("aws_s3_bucket", "acl"): "aws_s3_bucket_acl",
    ("aws_s3_bucket", "cors_rule"): "aws_s3_bucket_cors_configuration",
    ("aws_s3_bucket", "lifecycle_rule"): "aws_s3_bucket_lifecycle_configuration",
    ("aws_s3_bucket", "logging"): "aws_s3_bucket_logging",
    ("aws_s3_bucket", "policy"): "aws_s3_bucket_policy",
    ("aws_s3_bucket", "server_side_encryption_configuration"): "aws_s3_bucket_server_side_encryption_configuration",
    ("aws_s3_bucket", "versioning"): "aws_s3_bucket_versioning",
}
# How many of a resource there are is known, since its own count is.
_LENGTH = re.compile(r"\blength\((?:data\.)?aws_\w+\.\w+\)")
# What a count or for_each may not be decided by: nothing of it is known at the first plan.
_UNKNOWN = re.compile(
    r"(?<![\w.-])(?:data\.)?aws_\w+\.\w+|(?<![\w.-])module\.\w+|(?<![\w-])var(?:\.\w+)*_(?:arns?|url)\b"
)


def forbidden_texts(module: Module) -> Iterator[str]:
    for file in module.files:
        for pattern, what in TEXTS.items():
            for match in re.finditer(pattern, _without_words(file)):
                yield at(file.path, file.line(match.start()), f"{match[0]}: {what}")


def provider_traps(module: Module) -> Iterator[str]:
    for file, block in _made_or_read(module):
        type_ = block.labels[0]
        if not type_.startswith("aws_"):
            yield at(file.path, block.line, f"{type_} is of another provider: aws is enough")
        if type_ == "aws_region":
            yield at(
                file.path, block.line, "aws_region says its Region by another name in provider 6: use an ARN's part"
            )
        for line, name in _arguments(block):
            if name == "region":
                yield at(file.path, line, "a resource has an argument region only in provider 6: leave it out")
            if (type_, name) in INSTEAD:
                yield at(file.path, line, f"{type_}'s {name} is deprecated: use {INSTEAD[type_, name]}")


def _made_or_read(module: Module) -> Iterator[tuple[File, Block]]:
    """Also what a check block reads."""
    for file in module.files:
        for block in (inner for outer in file.blocks for inner in outer.everything()):
            if block.kind in ("data", "ephemeral", "resource") and block.labels:
                yield file, block


def _arguments(block: Block) -> Iterator[tuple[int, str]]:
    """A resource's arguments, written as attributes, as blocks or as dynamic blocks."""
    yield from ((found.line, found.name) for found in block.attributes)
    yield from ((inner.line, inner.labels[0] if inner.kind == "dynamic" else inner.kind) for inner in block.blocks)


def other_providers(module: Module) -> Iterator[str]:
    for file, block in module.blocks("terraform"):
        for required in (inner for inner in block.blocks if inner.kind == "required_providers"):
            for provider in required.attributes:
                if provider.name != "aws":
                    yield at(file.path, provider.line, f"{provider.name} is another provider: aws is enough")
    for file, block in module.blocks("provider") if module.is_library else ():
        yield at(file.path, block.line, "a module configures no provider: it takes its caller's")


def provisioners(module: Module) -> Iterator[str]:
    for file, block in module.blocks("resource"):
        for inner in block.everything():
            if inner.kind == "provisioner":
                yield at(file.path, inner.line, "what a provisioner does is in no plan: use a resource")


def messages_elsewhere(module: Module) -> Iterator[str]:
    for file in module.files:
        for block in (inner for outer in file.blocks for inner in outer.everything()):
            if (found := block.attribute("error_message")) and not found.text.startswith('"'):
                yield at(file.path, found.line, "docs/errors.md is made from messages: write it here, in quotes")


def named_this(module: Module) -> Iterator[str]:
    for file, block in module.blocks("resource", "data", "module"):
        if block.labels[-1] == "this":
            yield at(file.path, block.line, f'{block.kind} "this" is no name: call it by its role, such as intake')


def instances_by_unknown(module: Module) -> Iterator[str]:
    """Through locals too: a count that hangs on an ARN stops the first plan of whoever creates both at once."""
    locals_ = {found.name: found.text for _, block in module.blocks("locals") for found in block.attributes}
    for file, block in module.blocks("resource", "data", "module"):
        for name in ("count", "for_each"):
            found = block.attribute(name)
            if found and (unknown := _unknown_in(found.text, locals_)):
                what = f"{name} is decided by {unknown}, which can be unknown at plan: decide it by a flag"
                yield at(file.path, found.line, what)


def _unknown_in(text: str, locals_: dict[str, str]) -> str | None:
    if match := _UNKNOWN.search(_LENGTH.sub("", text)):
        return match[0]
    for name in re.findall(r"(?<![\w.-])local\.(\w+)", text):
        if name in locals_ and (found := _unknown_in(locals_[name], locals_)):
            return found
    return None


def _without_words(file: File) -> str:
    """The code without what is only said to people, which may give examples."""
    code = file.code
    for block in (inner for outer in file.blocks for inner in outer.everything()):
        for name in ("description", "error_message"):
            if (found := block.attribute(name)) and block.kind in ("variable", "output", "validation"):
                start, end = found.node.meta.start_pos, found.node.meta.end_pos
                code = code[:start] + re.sub(r"[^\n]", " ", code[start:end]) + code[end:]
    return code


RULES = (
    forbidden_texts,
    provider_traps,
    other_providers,
    provisioners,
    messages_elsewhere,
    named_this,
    instances_by_unknown,
)
