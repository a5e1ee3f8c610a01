"""Users log in by both mechanisms; whoever is refused does not hear why."""

import pymongo
import pytest
from conftest import URI
from pymongo.errors import OperationFailure

USERS = "clients_python_logins"
PASSWORD = "p\u00e4ss/w\u00f6rd,=%"


@pytest.fixture
def users(client):
    database = client[USERS]
    database.command("dropAllUsersFromDatabase")
    database.command("dropAllRolesFromDatabase")
    yield database
    database.command("dropAllUsersFromDatabase")
    database.command("dropAllRolesFromDatabase")


def login(user, password, **options):
    return pymongo.MongoClient(
        URI, username=user, password=password, authSource=USERS, serverSelectionTimeoutMS=10_000, **options
    )


def who(client):
    info = client.admin.command("connectionStatus")["authInfo"]
    return info["authenticatedUsers"], info["authenticatedUserRoles"]


@pytest.mark.parametrize("mechanism", [None, "SCRAM-SHA-1", "SCRAM-SHA-256"])
def test_mechanisms(users, mechanism):
    users.command("createUser", "a,b=c", pwd=PASSWORD, roles=["read"], writeConcern={"w": "majority"})
    options = {"authMechanism": mechanism} if mechanism else {}
    with login("a,b=c", PASSWORD, **options) as client:
        assert who(client) == ([{"user": "a,b=c", "db": USERS}], [{"role": "read", "db": USERS}])
    for user, password in (("a,b=c", "wrong"), ("nobody", PASSWORD)):
        with login(user, password, **options) as client, pytest.raises(OperationFailure) as refused:
            client.admin.command("ping")
        assert refused.value.code == 18
        assert refused.value.details["errmsg"] == "Authentication failed."


def test_one_mechanism(users):
    users.command("createUser", "old", pwd=PASSWORD, roles=[], mechanisms=["SCRAM-SHA-1"])
    assert users.client.admin.command("hello", saslSupportedMechs=f"{USERS}.old")["saslSupportedMechs"] == ["SCRAM-SHA-1"]
    with login("old", PASSWORD) as client:
        assert who(client)[0] == [{"user": "old", "db": USERS}]
    with login("old", PASSWORD, authMechanism="SCRAM-SHA-256") as client, pytest.raises(OperationFailure) as refused:
        client.admin.command("ping")
    assert refused.value.code == 18


def test_passwords_change(users):
    users.command("createUser", "u", pwd="one", roles=[])
    users.command("updateUser", "u", pwd="two")
    with login("u", "one") as client, pytest.raises(OperationFailure):
        client.admin.command("ping")
    with login("u", "two") as client:
        assert who(client)[0] == [{"user": "u", "db": USERS}]
        # Granted roles, and the removal of the user, take effect on an open connection.
        users.command("createRole", "r", privileges=[], roles=["readWrite"])
        users.command("grantRolesToUser", "u", roles=["r"])
        assert [role["role"] for role in who(client)[1]] == ["r", "readWrite"]
        users.command("dropUser", "u")
        assert who(client) == ([], [])


def test_restrictions(users):
    users.command("createUser", "u", pwd="p", roles=[], authenticationRestrictions=[{"clientSource": ["192.0.2.0/24"]}])
    with login("u", "p") as client, pytest.raises(OperationFailure) as refused:
        client.admin.command("ping")
    assert refused.value.code == 18
    here = [{"clientSource": ["127.0.0.0/8", "::1"]}]
    users.command("updateUser", "u", authenticationRestrictions=here)
    with login("u", "p") as client:
        assert client.admin.command("ping") == {"ok": 1.0}
