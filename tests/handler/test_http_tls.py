"""HTTPS: the certificate and its name are checked, and a handshake that fails sent nothing."""

from __future__ import annotations

import datetime
import ipaddress
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from idempotent_consumer.effect import Retryable, Uncertain
from tests.handler.http_provider import KEY, SECONDS, Provider, effect, event, ok, provider

SOON = 1.5
LOOPBACK = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))


@dataclass(frozen=True)
class Authority:
    """A throw-away authority. path: its certificate, as a file."""

    folder: Path
    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @classmethod
    def make(cls, folder: Path) -> Authority:
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "tests")])
        usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
        certificate = (
            _builder(name, name, key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .sign(key, hashes.SHA256())
        )
        (folder / "authority.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        return cls(folder, key, certificate)

    @property
    def path(self) -> Path:
        return self.folder / "authority.pem"

    def server(self, *names: x509.GeneralName, days: int = 1) -> ssl.SSLContext:
        """A server's side of TLS, with a certificate for the names. days: from yesterday until when it is valid."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
        certificate = (
            _builder(subject, self.certificate.subject, key.public_key(), days)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False)
            .sign(self.key, hashes.SHA256())
        )
        path = self.folder / f"{certificate.serial_number}.pem"
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        path.write_bytes(private + certificate.public_bytes(serialization.Encoding.PEM))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path)
        return context


def _builder(subject: x509.Name, issuer: x509.Name, key: Any, days: int = 1) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=2))
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority.make(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def trusted(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> Authority:
    """The authority, and the function trusts it as it would the system's."""
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.path))
    return authority


def call(made: Provider, seconds: float = SECONDS, host: str = "127.0.0.1") -> Any:
    return effect(
        made,
        seconds,
        url=f"'https://{host}:{made.port}/charges'",
        hosts=[f"{host}:{made.port}"],
        allow_http=False,
        result="body.id",
    )(event(), KEY)


def not_sent(made: Provider, seconds: float = SECONDS, host: str = "127.0.0.1") -> tuple[str, str]:
    with pytest.raises(Retryable) as caught:
        call(made, seconds, host)
    return caught.value.reason, caught.value.detail


@contextmanager
def raw(first: bytes | None) -> Iterator[Provider]:
    """Speaks no TLS: sends that and closes, or says nothing where it is None."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        made = Provider(listener.getsockname()[1])

        def serve() -> None:
            with suppress(OSError):
                connection, _ = listener.accept()
                with connection:
                    made.connections += 1
                    if first is None:
                        made.ended.wait(SECONDS)
                    else:
                        connection.recv(65_536)
                        connection.sendall(first)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield made
        finally:
            made.ended.set()
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            thread.join(SECONDS)


@pytest.mark.filterwarnings("error")
def test_trusted_certificate_for_the_name_is_called(trusted: Authority) -> None:
    with provider(ok(b'{"id":"ch-1"}'), trusted.server(LOOPBACK)) as made:
        assert call(made) == "ch-1"


def test_name_is_checked_without_its_dot_and_case(trusted: Authority) -> None:
    with provider(ok(b'{"id":"ch-1"}'), trusted.server(x509.DNSName("localhost"))) as made:
        assert call(made, host="LocalHost.") == "ch-1"
    assert made.headers()["Host"] == f"localhost:{made.port}"


def test_certificate_of_an_unknown_authority_sends_nothing(authority: Authority, tmp_path: Path) -> None:
    with provider(ok(), authority.server(LOOPBACK)) as made:
        reason, detail = not_sent(made)
    assert reason == "tls-failed"
    assert detail.startswith("SSLCertVerificationError: ")
    assert made.requests == []


def test_certificate_for_another_name_sends_nothing(trusted: Authority) -> None:
    with provider(ok(), trusted.server(x509.DNSName("other.example.com"))) as made:
        reason, detail = not_sent(made)
    assert reason == "tls-failed"
    assert "certificate is not valid for '127.0.0.1'" in detail
    assert made.requests == []


def test_common_name_is_no_name(trusted: Authority) -> None:
    with provider(ok(), trusted.server(x509.DNSName("127.0.0.1"))) as made:
        assert not_sent(made)[0] == "tls-failed"
    assert made.requests == []


def test_certificate_that_has_expired_sends_nothing(trusted: Authority) -> None:
    with provider(ok(), trusted.server(LOOPBACK, days=-1)) as made:
        reason, detail = not_sent(made)
    assert (reason, detail) == ("tls-failed", "SSLCertVerificationError: certificate has expired")
    assert made.requests == []


@pytest.mark.parametrize("first", [b"", b"HTTP/1.1 200 OK\r\n\r\n", b"\x15\x03\x03\x00\x02\x02\x28"])
def test_server_that_breaks_the_handshake_off_was_sent_nothing(trusted: Authority, first: bytes) -> None:
    with raw(first) as made:
        assert not_sent(made)[0] == "tls-failed"
    assert made.connections == 1


def test_handshake_that_hangs_sent_nothing(trusted: Authority) -> None:
    with raw(None) as made:
        assert not_sent(made, SOON) == ("connect-timeout", "the TLS handshake took too long")


def test_alert_after_the_handshake_is_uncertain(trusted: Authority) -> None:
    """TLS 1.3 tells a caller only then, as it reads, that it would have needed a certificate of its own."""
    server = trusted.server(LOOPBACK)
    server.verify_mode = ssl.CERT_REQUIRED
    server.load_verify_locations(trusted.path)
    with provider(ok(), server) as made, pytest.raises(Uncertain) as caught:
        call(made)
    assert caught.value.reason == "connection-lost"
    assert made.connections == 1


def test_answer_that_hangs_is_uncertain(trusted: Authority) -> None:
    def hang(_: socket.socket, made: Provider) -> None:
        made.ended.wait(SECONDS)

    with provider(hang, trusted.server(LOOPBACK)) as made, pytest.raises(Uncertain) as caught:
        call(made, SOON)
    assert caught.value.reason == "answer-timeout"


def test_answer_that_trickles_is_uncertain(trusted: Authority) -> None:
    def trickle(connection: socket.socket, made: Provider) -> None:
        while not made.ended.wait(0.02):
            connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")

    with provider(trickle, trusted.server(LOOPBACK)) as made, pytest.raises(Uncertain) as caught:
        call(made, SOON)
    assert caught.value.reason == "answer-timeout"


def test_body_that_trickles_leaves_the_status(trusted: Authority) -> None:
    def trickle(connection: socket.socket, made: Provider) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        while not made.ended.wait(0.02):
            connection.sendall(b"x")

    with provider(trickle, trusted.server(LOOPBACK)) as made:
        assert call(made, SOON) is None
