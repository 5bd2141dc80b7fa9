"""Finding Terraform and its AWS provider."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from local import terraform
from local.terraform import TerraformError

PLATFORM = "linux_amd64"


def unpacked(mirror: Path, version: str, platform: str = PLATFORM) -> Path:
    folder = mirror / terraform.PROVIDER / version / platform
    folder.mkdir(parents=True)
    (folder / f"terraform-provider-aws_v{version}_x5").touch()
    return mirror


def packed(mirror: Path, version: str, platform: str = PLATFORM) -> Path:
    folder = mirror / terraform.PROVIDER
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"terraform-provider-aws_{version}_{platform}.zip").touch()
    return mirror


@pytest.mark.parametrize(
    ("version", "expected"), [("1.9.0", (1, 9, 0)), ("1.13.0-beta2", (1, 13, 0)), ("5.100.0", (5, 100, 0))]
)
def test_a_version_is_its_numbers(version: str, expected: tuple[int, ...]) -> None:
    assert terraform.numbers(version) == expected


def test_a_mirror_may_hold_packed_and_unpacked_providers(tmp_path: Path) -> None:
    unpacked(tmp_path, "5.100.0")
    packed(tmp_path, "6.2.0")
    assert terraform.provider_versions(tmp_path, PLATFORM) == [(5, 100, 0), (6, 2, 0)]


def test_versions_that_the_module_refuses_and_other_platforms_do_not_count(tmp_path: Path) -> None:
    unpacked(tmp_path, "5.99.1")
    unpacked(tmp_path, "7.0.0")
    unpacked(tmp_path, "5.100.0", "darwin_arm64")
    assert terraform.provider_versions(tmp_path, PLATFORM) == []


def test_the_mirror_that_the_user_names_is_taken(tmp_path: Path) -> None:
    unpacked(tmp_path / "home" / "usual", "5.100.0")
    named = packed(tmp_path / "named", "6.0.0")
    assert terraform.find_mirror(PLATFORM, tmp_path / "home", str(named)) == named


def test_a_named_mirror_without_the_provider_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TerraformError, match=r"TF_PROVIDER_MIRROR=.*holds no AWS provider >= 5\.100, < 7"):
        terraform.find_mirror(PLATFORM, tmp_path, str(tmp_path / "empty"))


@pytest.mark.parametrize("place", [".terraform.d/plugins", ".local/share/terraform/plugins", "mirror"])
def test_a_mirror_in_the_home_folder_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    monkeypatch.setattr(terraform, "_MIRROR_FOLDERS", ("~",))
    mirror = unpacked(tmp_path / place, "5.100.0")
    found = [path for path in terraform.mirror_candidates(tmp_path, ("~",)) if path == mirror]
    assert found
    assert terraform.provider_versions(found[0], PLATFORM) == [(5, 100, 0)]


def test_folders_that_cannot_be_read_are_passed_over(tmp_path: Path) -> None:
    assert list(terraform.mirror_candidates(tmp_path, (str(tmp_path / "not-there"),)))


def test_the_configuration_takes_only_the_aws_provider_from_the_mirror(tmp_path: Path) -> None:
    assert terraform.mirror_configuration(Path("/mirror")) == (
        "provider_installation {\n"
        "  filesystem_mirror {\n"
        '    path    = "/mirror"\n'
        '    include = ["registry.terraform.io/hashicorp/aws"]\n'
        "  }\n"
        "  direct {\n"
        '    exclude = ["registry.terraform.io/hashicorp/aws"]\n'
        "  }\n"
        "}\n"
    )


@pytest.fixture
def fresh_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """A home folder of the test's own, and no memory of the environment found before."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setattr(terraform, "BUILD", tmp_path / "build")
    for name in ("TF_CLI_CONFIG_FILE", "TF_PROVIDER_MIRROR"):
        monkeypatch.delenv(name, raising=False)
    terraform.cli_environment.cache_clear()
    yield home
    terraform.cli_environment.cache_clear()


def test_the_user_s_own_cli_configuration_is_taken_as_it_is(
    fresh_environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = fresh_environment / "own.tfrc"
    own.touch()
    monkeypatch.setenv("TF_CLI_CONFIG_FILE", str(own))
    assert terraform.cli_environment()["TF_CLI_CONFIG_FILE"] == str(own)


def test_a_cli_configuration_in_the_home_folder_is_taken_when_the_named_one_is_missing(
    fresh_environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = fresh_environment / ".terraformrc"
    usual.touch()
    monkeypatch.setenv("TF_CLI_CONFIG_FILE", str(fresh_environment / "missing.tfrc"))
    assert terraform.cli_environment()["TF_CLI_CONFIG_FILE"] == str(usual)


def test_a_missing_cli_configuration_gives_way_to_a_mirror(
    fresh_environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror = unpacked(fresh_environment / "mirror", "5.100.0", terraform.find_terraform().platform)
    monkeypatch.setenv("TF_CLI_CONFIG_FILE", str(fresh_environment / "missing.tfrc"))
    monkeypatch.setenv("TF_PROVIDER_MIRROR", str(mirror))
    written = Path(terraform.cli_environment()["TF_CLI_CONFIG_FILE"])
    assert written.read_text() == terraform.mirror_configuration(mirror)


def test_no_aws_account_and_no_setting_of_the_user_s_reaches_terraform(
    fresh_environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terraform, "_cli_configuration", lambda: Path("cli.tfrc"))
    for name in ("AWS_PROFILE", "AWS_ENDPOINT_URL", "TF_VAR_name", "TF_CLI_ARGS_plan", "TF_PLUGIN_CACHE_DIR"):
        monkeypatch.setenv(name, "the user's")
    environment = terraform.cli_environment()
    assert "the user's" not in environment.values()
    assert environment["AWS_ACCESS_KEY_ID"] == environment["AWS_SECRET_ACCESS_KEY"] == "test"
    assert environment["AWS_CONFIG_FILE"] == os.devnull


def test_without_mirror_and_registry_the_message_says_what_to_do(
    fresh_environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terraform, "find_mirror", lambda *args: None)
    # An address that refuses at once stands for a network that does not reach the registry.
    for name in ("HTTPS_PROXY", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("TF_REGISTRY_DISCOVERY_RETRY", "0")
    with pytest.raises(TerraformError, match=r"(?s)not on this machine.*TF_PROVIDER_MIRROR=/path/to/folder"):
        terraform.cli_environment()


def test_a_copy_has_the_modules_and_the_zip_but_no_state(tmp_path: Path) -> None:
    terraform.copy_modules(tmp_path, "examples/orders")
    assert (tmp_path / "main.tf").is_file()
    assert (tmp_path / "modules" / "queue" / "main.tf").is_file()
    assert (tmp_path / "lambda" / "dist" / "idempotent-consumer.zip").is_file()
    assert (tmp_path / "examples" / "orders" / "main.tf").is_file()
    assert not list(tmp_path.rglob("*.tfstate*"))
    assert not list(tmp_path.rglob(".terraform*"))
