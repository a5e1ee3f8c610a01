"""Bulk writes, and the duplicate keys that stop them or do not."""

import pytest
from pymongo import DeleteMany, DeleteOne, InsertOne, ReplaceOne, UpdateMany, UpdateOne
from pymongo.errors import BulkWriteError, DuplicateKeyError


def test_mixed_bulk(things):
    result = things.bulk_write([
        InsertOne({"_id": 1, "n": 1}), InsertOne({"_id": 2, "n": 2}), InsertOne({"_id": 3, "n": 3}),
        UpdateOne({"_id": 1}, {"$inc": {"n": 10}}), UpdateMany({}, {"$set": {"seen": 1}}),
        ReplaceOne({"_id": 2}, {"n": 22}), UpdateOne({"_id": 9}, {"$set": {"n": 9}}, upsert=True),
        DeleteOne({"_id": 3}), DeleteMany({"n": {"$gt": 20}}),
    ])
    assert (result.inserted_count, result.matched_count, result.modified_count) == (3, 5, 5)
    assert (result.deleted_count, result.upserted_ids) == (2, {6: 9})
    assert list(things.find().sort("_id")) == [{"_id": 1, "n": 11, "seen": 1}, {"_id": 9, "n": 9}]


def test_duplicate_key_names_the_key(things):
    things.create_index([("a", 1), ("b", -1)], unique=True)
    things.insert_one({"_id": 1, "a": "x", "b": 2})
    with pytest.raises(DuplicateKeyError) as caught:
        things.insert_one({"_id": 2, "a": "x", "b": 2})
    assert caught.value.code == 11000
    assert caught.value.details["keyPattern"] == {"a": 1, "b": -1}
    assert caught.value.details["keyValue"] == {"a": "x", "b": 2}
    assert caught.value.details["errmsg"] == (
        'E11000 duplicate key error collection: clients_python.things index: a_1_b_-1 dup key: { a: "x", b: 2 }')

    things.insert_one({"_id": 3, "a": "y", "b": 2})
    with pytest.raises(DuplicateKeyError) as caught:
        things.update_one({"_id": 3}, {"$set": {"a": "x"}})
    assert caught.value.details["keyValue"] == {"a": "x", "b": 2}
    with pytest.raises(DuplicateKeyError):
        things.find_one_and_update({"_id": 3}, {"$set": {"a": "x"}})


@pytest.mark.parametrize("ordered, failed, kept", [(True, [1], [1]), (False, [1, 3], [1, 2, 3])])
def test_duplicate_in_the_middle(things, ordered, failed, kept):
    documents = [{"_id": 1}, {"_id": 1, "again": 1}, {"_id": 2}, {"_id": 2, "again": 1}, {"_id": 3}]
    with pytest.raises(BulkWriteError) as caught:
        things.insert_many(documents, ordered=ordered)
    details = caught.value.details
    assert details["nInserted"] == len(kept)
    assert [error["index"] for error in details["writeErrors"]] == failed
    for error in details["writeErrors"]:
        assert (error["code"], error["keyPattern"]) == (11000, {"_id": 1})
        assert error["keyValue"] == {"_id": documents[error["index"]]["_id"]}
    assert [document["_id"] for document in things.find().sort("_id")] == kept


def test_bulk_of_more_than_one_message(things):
    """120,000 writes: drivers must split at 100,000."""
    things.insert_many(({"_id": i} for i in range(120_000)))
    assert things.count_documents({}) == 120_000
    things.bulk_write([DeleteOne({"_id": i}) for i in range(0, 2_000)], ordered=False)
    assert things.count_documents({}) == 118_000
