"""TLS and certificates, as PyMongo speaks them: on the server that BUNKO_TLS_URI names, whose user root has the password
secret. Certificates are in the directory that BUNKO_TLS_CERTIFICATES names."""

import os
from pathlib import Path

import pymongo
import pytest
from pymongo.errors import ConnectionFailure, OperationFailure

URI = os.environ.get("BUNKO_TLS_URI")
CERTIFICATES = Path(os.environ.get("BUNKO_TLS_CERTIFICATES", "."))
# As RFC 2253 writes it: the last part first, the comma of a value escaped.
ANN = "CN=ann,OU=clients\\, tests,O=Bunko"
SCRAM = {"username": "root", "password": "secret", "authSource": "admin"}
X509 = {"authMechanism": "MONGODB-X509"}

pytestmark = pytest.mark.skipif(not URI, reason="BUNKO_TLS_URI names no server")


def connect(ca="ca", certificate=None, **options):
    if certificate:
        options["tlsCertificateKeyFile"] = str(CERTIFICATES / f"{certificate}.pem")
    return pymongo.MongoClient(
        URI, tls=True, tlsCAFile=str(CERTIFICATES / f"{ca}.pem"), serverSelectionTimeoutMS=3_000, **options
    )


@pytest.fixture
def ann():
    with connect(**SCRAM) as root:
        external = root.get_database("$external")
        external.command("createUser", ANN, roles=[{"role": "readWrite", "db": "clients_python_tls"}])
        yield external
        root.drop_database("clients_python_tls")
        if external.command("usersInfo", ANN)["users"]:
            external.command("dropUser", ANN)


def refusal(client, code):
    with client, pytest.raises(OperationFailure) as refused:
        client.clients_python_tls.c.find_one()
    assert refused.value.code == code


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-1", "SCRAM-SHA-256"])
@pytest.mark.parametrize("certificate", [None, "nobody"])
def test_passwords(mechanism, certificate):
    with connect(certificate=certificate, authMechanism=mechanism, **SCRAM) as client:
        client.clients_python_tls.c.insert_many([{"_id": i, "pad": "x" * 10_000} for i in range(500)])
        assert client.clients_python_tls.c.count_documents({}) == 500
        assert sum(1 for _ in client.clients_python_tls.c.find({}, batch_size=50)) == 500
        client.drop_database("clients_python_tls")
    refusal(connect(certificate=certificate, authMechanism=mechanism, **SCRAM | {"password": "wrong"}), 18)


def test_who_is_not_trusted_is_not_spoken_with():
    for client in (
        connect(ca="other-ca", **SCRAM),
        connect(certificate="stranger", **SCRAM),
        # Without TLS.
        pymongo.MongoClient(URI, serverSelectionTimeoutMS=1_000, **SCRAM),
    ):
        with client, pytest.raises(ConnectionFailure):
            client.admin.command("ping")


def test_certificates(ann):
    for options in ({}, {"username": ANN}):
        with connect(certificate="ann", **X509, **options) as client:
            assert client.admin.command("connectionStatus")["authInfo"]["authenticatedUsers"] == [
                {"user": ANN, "db": "$external"}
            ]
            client.clients_python_tls.c.replace_one({"_id": 1}, {}, upsert=True)
            assert client.clients_python_tls.c.find_one() == {"_id": 1}
            with pytest.raises(OperationFailure) as refused:
                client.admin.command("serverStatus")
            assert refused.value.code == 13
    shown = ann.command("usersInfo", ANN)["users"][0]
    assert shown["mechanisms"] == ["external"]
    # No user, another user's name, and no certificate: the answer does not tell which it was.
    refusal(connect(certificate="nobody", **X509), 18)
    refusal(connect(certificate="nobody", username=ANN, **X509), 18)
    with connect() as bare, pytest.raises(OperationFailure) as refused:
        bare.get_database("$external").command("authenticate", mechanism="MONGODB-X509", user=ANN)
    assert refused.value.code == 18
    # A login ends with its user.
    with connect(certificate="ann", **X509) as client:
        client.clients_python_tls.c.find_one()
        ann.command("dropUser", ANN)
        with pytest.raises(OperationFailure) as refused:
            client.clients_python_tls.c.find_one()
        assert refused.value.code == 13


def test_users_of_certificates_have_no_password(ann):
    for command in ({"createUser": "x", "pwd": "p", "roles": []}, {"updateUser": ANN, "pwd": "p"}):
        with pytest.raises(OperationFailure) as refused:
            ann.command(command)
        assert refused.value.code == 2


def test_plain_is_refused_by_name():
    with connect(username="u", password="p", authMechanism="PLAIN") as client, pytest.raises(OperationFailure) as refused:
        client.admin.command("ping")
    assert refused.value.code == 334
    assert "PLAIN" in refused.value.details["errmsg"]
