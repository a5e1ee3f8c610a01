"""Cursors: batches, getMore, killCursors."""

import pytest
from bson import Int64
from pymongo import CursorType
from pymongo.errors import CursorNotFound

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
