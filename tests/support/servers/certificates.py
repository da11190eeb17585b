"""Certificates for servers on 127.0.0.1: signed by themselves, or by an authority of the test's own."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_BEGIN = datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC)
_END = datetime.datetime(2999, 1, 1, tzinfo=datetime.UTC)


@dataclass(frozen=True)
class Signer:
    """An authority that signs certificates."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    def write(self, path: Path) -> Path:
        path.write_bytes(self.certificate.public_bytes(serialization.Encoding.PEM))
        return path


def make_authority() -> Signer:
    key = ec.generate_private_key(ec.SECP256R1())
    builder = _certificate(key, name="test authority", signed_by="test authority")
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    return Signer(builder.sign(key, hashes.SHA256()), key)


def server_context(folder: Path, *, signer: Signer | None = None, address: str = "127.0.0.1") -> ssl.SSLContext:
    """The context of a server whose certificate is valid for `address`; without `signer` it signs itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    builder = _certificate(key, name="test server", signed_by="test authority" if signer else "test server")
    names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))])
    signing = signer.key if signer else key
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(signing.public_key())
    signed = builder.add_extension(names, critical=False).add_extension(issuer, critical=False)
    certificate = signed.sign(signing, hashes.SHA256())
    pem = folder / "server.pem"
    plain = serialization.NoEncryption()
    pem.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    return context


def _certificate(key: ec.EllipticCurvePrivateKey, *, name: str, signed_by: str) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(_name(name))
        .issuer_name(_name(signed_by))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(_BEGIN)
        .not_valid_after(_END)
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])
