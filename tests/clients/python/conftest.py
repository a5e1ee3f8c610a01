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
