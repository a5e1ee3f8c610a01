"""Cursors: batches, getMore, killCursors."""

import time
from pathlib import Path
from urllib.parse import quote_plus

import pymongo
import pytest
from bson import Int64
from pymongo import CursorType
from pymongo.errors import CursorNotFound, OperationFailure

DOCUMENTS = 100_000


def test_cursor_over_100_000_documents(things):
    things.insert_many({"_id": i, "pad": "x" * 100} for i in range(DOCUMENTS))
    assert [document["_id"] for document in things.find()] == list(range(DOCUMENTS))
    assert sum(1 for _ in things.find(batch_size=1_000).sort("_id", -1)) == DOCUMENTS
    assert sum(1 for _ in things.aggregate([{"$match": {"_id": {"$gte": 50}}}])) == DOCUMENTS - 50


def test_first_batch_holds_101_documents(things):
    things.insert_many({"_id": i} for i in range(150))
    first = things.database.command("find", "things")["cursor"]
    assert (len(first["firstBatch"]), first["ns"]) == (101, "clients_python.things")
    rest = things.database.command({"getMore": first["id"], "collection": "things"})["cursor"]
    assert (len(rest["nextBatch"]), rest["id"]) == (49, 0)


def test_single_batch_and_negative_limit(things):
    things.insert_many({"_id": i} for i in range(150))
    cursor = things.database.command({"find": "things", "batchSize": 10, "singleBatch": True})["cursor"]
    assert (len(cursor["firstBatch"]), cursor["id"]) == (10, 0)
    assert len(list(things.find().limit(-20))) == 20


def test_killed_cursor_is_gone(things):
    things.insert_many({"_id": i} for i in range(10))
    identifier = things.database.command({"find": "things", "batchSize": 2})["cursor"]["id"]
    assert identifier != 0
    reply = things.database.command({"killCursors": "things", "cursors": [identifier, Int64(12345)]})
    assert reply["cursorsKilled"] == [identifier]
    assert reply["cursorsNotFound"] == [12345]
    with pytest.raises(CursorNotFound) as caught:
        things.database.command({"getMore": identifier, "collection": "things"})
    assert caught.value.code == 43
    assert caught.value.details["codeName"] == "CursorNotFound"


def test_time_of_the_first_batch_does_not_end_waits_for_data(database):
    letters = database.create_collection("letters", capped=True, size=4096)
    letters.insert_one({"_id": 1})
    cursor = letters.find(cursor_type=CursorType.TAILABLE_AWAIT).max_time_ms(99)
    assert list(cursor) == [{"_id": 1}]
    letters.insert_one({"_id": 2})
    assert next(cursor) == {"_id": 2}


CLIENT_CURSORS_MAX = 25_000


def test_idle_cursors_of_one_client_do_not_harm_others(client, things):
    """As many idle cursors as one client may have. 100,000 of them, all that a server keeps, need four clients."""
    socket = Path(f"/tmp/mongodb-{client.address[1]}.sock")
    if not socket.exists():
        pytest.skip(f"no other way to the server: there is no {socket}")
    things.insert_many({"_id": i, "pad": "x" * 200} for i in range(1000))
    resident_mb = lambda: client.admin.command("serverStatus")["mem"]["resident"]
    before_mb = resident_mb()
    with client.start_session() as session:
        with pytest.raises(OperationFailure, match="cursors of this client are open already") as caught:
            for _ in range(CLIENT_CURSORS_MAX + 1):
                things.database.command({"find": "things", "batchSize": 1}, session=session)
        assert caught.value.code == 96
        with pymongo.MongoClient(f"mongodb://{quote_plus(str(socket))}", directConnection=True) as other:
            others = other.clients_python.things
            slowest_s = 0
            for i in range(500):
                began = time.perf_counter()
                assert sum(1 for _ in others.find(batch_size=400)) == 1000
                others.update_one({"_id": i}, {"$inc": {"n": 1}})
                slowest_s = max(slowest_s, time.perf_counter() - began)
        assert slowest_s < 1, "the others are served as ever"
        assert resident_mb() - before_mb < 500, "20 kB a cursor at most"
        client.admin.command("killSessions", [session.session_id])
    assert client.admin.command("serverStatus")["metrics"]["cursor"]["open"]["total"] < 100
    assert sum(1 for _ in things.find(batch_size=400)) == 1000
