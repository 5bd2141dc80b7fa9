"""Makes one root module of all Terraform blocks: a child module for each, with what the block takes for granted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.docs.pages import Block
from tests.plan.support import module_source

# By its address, what a page leaves to the reader.
GIVEN = {
    "aws_dynamodb_table.stock": """
resource "aws_dynamodb_table" "stock" {
  billing_mode = "PAY_PER_REQUEST"
  hash_key     = "sku"
  name         = "stock"
  attribute {
    name = "sku"
    type = "S"
  }
}""",
    "aws_kms_key.mine": 'resource "aws_kms_key" "mine" {}',
    "aws_lambda_function.ingest": """
resource "aws_lambda_function" "ingest" {
  filename      = "ingest.zip"
  function_name = "ingest"
  handler       = "ingest.handler"
  role          = "arn:aws:iam::111122223333:role/ingest"
  runtime       = "python3.13"
}""",
    "aws_s3_bucket.uploads": 'resource "aws_s3_bucket" "uploads" { bucket = "uploads" }',
    "aws_secretsmanager_secret.token": 'resource "aws_secretsmanager_secret" "token" { name = "token" }',
    "aws_sns_topic.chat": 'resource "aws_sns_topic" "chat" { name = "chat" }',
    "aws_sns_topic.mine": 'resource "aws_sns_topic" "mine" { name = "mine" }',
    "aws_sns_topic.pager": 'resource "aws_sns_topic" "pager" { name = "pager" }',
    "aws_sns_topic.source": 'resource "aws_sns_topic" "source" { name = "source" }',
    "module.orders": """
module "orders" {
  source              = "@/"
  name                = "orders"
  business_table_name = "order_records"
}""",
    "module.videos": """
module "videos" {
  source = "@/modules/queue"
  name   = "videos"
}""",
}
# The block that README begins with, but for the argument that a line of variations gives. The reconciler is a quarter
# of the plan, and no variation but its own depends on it.
MINIMAL = {"name": '"orders"', "business_table_name": '"order_records"', "reconciler": "{ enabled = false }"}
# A table of the reader's that nobody can look up here: its name is known after apply, and so is the rest of it.
EXISTING_TABLE = """
resource "aws_dynamodb_table" "existing" {
  billing_mode = "PAY_PER_REQUEST"
  hash_key     = "id"
  name         = "existing"
  attribute {
    name = "id"
    type = "S"
  }
}
"""
STATEMENT = re.compile(
    r"^(check|data|import|locals|module|moved|output|provider|removed|resource|terraform|variable)\b.*\{", re.M
)
SOURCE = re.compile(r'(\bsource\s*=\s*)"(?:git::[^"/]*//[^"]*?\.git(?://([^"?]*))?\?ref=[^"]+|@/([^"]*))"')


def write_root(folder: Path, some: list[Block]) -> None:
    """Write a child module for each block, and the calls of them; one that stands on several pages is planned once."""
    different = {SOURCE.sub(lambda found: found[2] or "", block.text): block for block in some}.values()
    for block in different:
        child = folder / block.name
        child.mkdir()
        others = [other for other in some if other.page == block.page and other != block]
        (child / "main.tf").write_text(with_local_sources(complete(block, others), child), encoding="utf-8")
        # What a page names beside its own files: a plan looks only whether they are there.
        for beside, zip_file in re.findall(r'"(\$\{path\.module\}/)?(\w+\.zip)"', block.text):
            ((child if beside else folder) / zip_file).write_bytes(b"zip")
    calls = (f'module "{block.name}" {{\n  source = "./{block.name}"\n}}\n' for block in different)
    (folder / "blocks.tf").write_text("".join(calls), encoding="utf-8")


def complete(block: Block, others: list[Block]) -> str:
    """The block as statements, with the resources and modules that it refers to and does not make."""
    text = block.text if STATEMENT.search(block.text) else "\n".join(variations(block.text))
    text = on_existing_table(text)
    while missing := [statement for statement in referred(text, others) if statement not in text]:
        text += "\n" + missing[0] + "\n"
    return text


def referred(text: str, others: list[Block]) -> Iterator[str]:
    """What a text refers to and does not make: from another block of its page, or given."""
    # These name what is no longer there.
    without_moves = re.sub(r"^(?:moved|removed) \{.*?^\}", "", text, flags=re.M | re.S)
    for address in sorted(set(re.findall(r"\b(?:aws_\w+|module)\.\w+", without_moves))):
        kind, name = address.split(".")
        made = f'module "{name}"' if kind == "module" else f'"{kind}" "{name}"'
        if made not in text:
            yield next((other.text for other in others if made in other.text), GIVEN.get(address, ""))


def variations(text: str) -> Iterator[str]:
    """A call of the module for each argument in the text."""
    for number, argument in enumerate(arguments(text)):
        name = argument.split("=")[0].strip()
        rest = "".join(f"  {key} = {value}\n" for key, value in MINIMAL.items() if key != name)
        yield f'module "v{number}" {{\n  source = "@/"\n{rest}{argument}}}\n'


def arguments(text: str) -> Iterator[str]:
    """The assignments of a text; one ends with the line that closes its last bracket."""
    argument, depth = "", 0
    for line in text.splitlines(keepends=True):
        code = re.sub(r'"(?:[^"\\]|\\.)*"', '""', line).split("#")[0]
        depth += len(re.findall(r"[\[{(]", code)) - len(re.findall(r"[\]})]", code))
        argument += line
        if depth == 0:
            if code.strip():
                yield argument
            argument = ""
    assert not argument.strip(), f"brackets are not closed in {argument!r}"


def on_existing_table(text: str) -> str:
    """Without AWS a plan cannot look for a table that exists."""
    if not re.search(r"business_table\s*=\s*\{[^}]*create\s*=\s*false", text):
        return text
    parts = re.split(r"(?=^module )", text, flags=re.M)
    changed = [
        re.sub(r"(business_table_name\s*=\s*)\S+", r"\1aws_dynamodb_table.existing.id", part)
        if re.search(r"business_table\s*=\s*\{[^}]*create\s*=\s*false", part)
        else part
        for part in parts
    ]
    return "".join(changed) + EXISTING_TABLE


def with_local_sources(text: str, folder: Path) -> str:
    """The modules of this checkout in the place of published ones, to be read in place."""

    def local(found: re.Match[str]) -> str:
        return f'{found[1]}"{module_source(folder, found[2] or found[3] or ".")}"'

    return SOURCE.sub(local, text)
