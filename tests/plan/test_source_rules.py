"""Rules about the Terraform files themselves."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from local.terraform import CHECKOUT, find_terraform

MODULES = [".", *(f"modules/{path.name}" for path in sorted((CHECKOUT / "modules").iterdir()) if path.is_dir())]
SHIPPED = sorted(
    path for module in [*MODULES, "examples/*"] for path in CHECKOUT.glob(f"{module}/*.tf" if module != "." else "*.tf")
)
BLOCK = re.compile(r'^(?P<kind>variable|output|resource|data) (?P<labels>"[^{]+") \{\n(?P<body>.*?)^\}', re.M | re.S)

# Each word that may not be written, with the reason.
BANNED = {
    r"arn:aws:": "an ARN of one partition does not hold in China, GovCloud and the EU's own (T15)",
    r"amazonaws\.com\.cn|\.api\.aws": "a DNS suffix belongs to a partition (T15)",
    r"\b(plan)?timestamp\(\)": "each plan would show a change (T10)",
    r"\buuid\(\)": "each plan would show a change (T10)",
    r'\bprovisioner "': "what a provisioner does is in no plan",
    r'data "aws_region"': "its attribute has two names in providers 5 and 6",
    r'"(null_resource|terraform_data|external|archive_file|local_file)"': "no other provider, no script",
    r'source = "hashicorp/(?!aws")': "only the aws provider",
    r'\bresource "[a-z_]+" "this"': "a resource is named by its role",
}


def text_of(path: Path) -> str:
    """A file without its comments."""
    return re.sub(r"(?m)^\s*(#|//).*$|\s#\s.*$", "", path.read_text())


@pytest.mark.parametrize("pattern", BANNED)
@pytest.mark.case("T10", "T15")
def test_no_shipped_file_writes(pattern: str) -> None:
    found = [path.relative_to(CHECKOUT).as_posix() for path in SHIPPED if re.search(pattern, text_of(path))]
    assert found == [], BANNED[pattern]


def test_the_shipped_files_are_found() -> None:
    assert MODULES == [
        ".",
        "modules/alarms",
        "modules/function",
        "modules/operation",
        "modules/queue",
        "modules/reconciler",
        "modules/tables",
        "modules/workflow",
    ]
    examples = ["eventbridge", "fan-out", "fifo", "ingestion", "orders", "payments", "s3-ingest", "stock", "webhook"]
    assert {path.parent.relative_to(CHECKOUT).as_posix() for path in SHIPPED} == {
        *MODULES,
        *(f"examples/{name}" for name in examples),
    }


@pytest.mark.parametrize("module", MODULES)
def test_a_module_has_its_files(module: str) -> None:
    names = {path.name for path in (CHECKOUT / module).iterdir()}
    assert {"README.md", "main.tf", "outputs.tf", "variables.tf", "versions.tf"} <= names


@pytest.mark.parametrize("module", MODULES)
def test_a_module_takes_terraform_1_9_and_the_aws_provider_from_5_100_to_6(module: str) -> None:
    assert (CHECKOUT / module / "versions.tf").read_text() == (
        "terraform {\n"
        '  required_version = ">= 1.9"\n'
        "\n"
        "  required_providers {\n"
        "    aws = {\n"
        '      source  = "hashicorp/aws"\n'
        '      version = ">= 5.100, < 7"\n'
        "    }\n"
        "  }\n"
        "}\n"
    )


def blocks(*kinds: str) -> list[tuple[str, str]]:
    """The shipped blocks of these kinds: where, and their text."""
    return [
        (f"{path.relative_to(CHECKOUT)}: {match['kind']} {match['labels']}", match["body"])
        for path in SHIPPED
        for match in BLOCK.finditer(path.read_text())
        if match["kind"] in kinds
    ]


def test_every_variable_and_output_has_a_description_that_is_a_sentence() -> None:
    found = blocks("variable", "output")
    assert len(found) > 80
    for where, body in found:
        description = re.search(r'^  description = (?:"(.*)"|<<-EOT\n(.*?)^  EOT)$', body, re.M | re.S)
        assert description, f"{where} has no description"
        words = (description[1] or description[2]).strip()
        assert words[0].isupper(), f"{where}: {words}"
        assert words.endswith("."), f"{where}: {words}"


def test_every_variable_of_a_module_says_whether_null_is_a_value() -> None:
    """`nullable = false`, or a default of null."""
    for where, body in blocks("variable"):
        if not where.startswith("examples/"):
            assert re.search(r"^  nullable +=  *false$|^  default +=  *null$", body, re.M), where


def test_every_attribute_of_a_grouped_variable_is_described() -> None:
    for where, body in blocks("variable"):
        for_users = not where.startswith("modules/") or where.startswith(("modules/operation/", "modules/workflow/"))
        if for_users and (attributes := re.findall(r"^ {4,6}(\w+) += (?:optional\(|list\(|string$)", body, re.M)):
            description = body.split("type = object")[0]
            missing = [name for name in attributes if not re.search(rf"\b{name}\b", description)]
            assert missing == [], where


def test_no_file_is_longer_than_150_lines() -> None:
    assert {path.name: n for path in SHIPPED if (n := len(path.read_text().splitlines())) > 150} == {}


def test_variables_and_outputs_are_in_alphabetical_order() -> None:
    for path in SHIPPED:
        if path.name in ("outputs.tf", "variables.tf"):
            names = re.findall(r'^(?:output|variable) "(\w+)"', path.read_text(), re.M)
            assert names == sorted(names), path


def test_the_files_are_formatted() -> None:
    checked = subprocess.run(
        [find_terraform().path, "fmt", "-check", "-recursive", "-list=true", "modules", "examples", "tests"],
        capture_output=True,
        text=True,
        check=False,
        cwd=CHECKOUT,
    )
    root = subprocess.run(
        [find_terraform().path, "fmt", "-check"], capture_output=True, text=True, check=False, cwd=CHECKOUT
    )
    assert (checked.stdout, checked.returncode, root.stdout, root.returncode) == ("", 0, "", 0)
