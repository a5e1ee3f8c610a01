"""Every test gets the database of this suite, empty, on the server that BUNKO_URI names."""

import os

import pymongo
import pytest

URI = os.environ["BUNKO_URI"]


@pytest.fixture(scope="session")
def client():
    with pymongo.MongoClient(URI, serverSelectionTimeoutMS=10_000) as client:
        yield client


@pytest.fixture
def database(client):
    client.drop_database("clients_python")
    yield client.clients_python
    client.drop_database("clients_python")


@pytest.fixture
def things(database):
    return database.things


@pytest.fixture(scope="session")
def set_client():
    """A client of the replica set of one member that takes test commands, where there is one."""
    uri = os.environ.get("BUNKO_SET_URI")
    if not uri:
        pytest.skip("BUNKO_SET_URI names no replica set")
    with pymongo.MongoClient(uri, serverSelectionTimeoutMS=10_000) as client:
        yield client
