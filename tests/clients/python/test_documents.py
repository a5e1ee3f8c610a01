"""Documents: every type of BSON, updates, findAndModify, sorting and projecting."""

import datetime
import re
import uuid

import bson
import pytest
from bson import Binary, Code, DBRef, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp
from bson.binary import UuidRepresentation
from bson.raw_bson import RawBSONDocument
from pymongo import ReturnDocument

EVERY_TYPE = {
    "double": 1.5,
    "double_infinite": float("inf"),
    "string": "žluťoučký 文庫 \0 🐴",
    "object": {"a": {"b": {}}},
    "array": [1, "two", [3.0], {}],
    "generic": b"\x00\x01\xff",
    "user_defined": Binary(b"\x00\x01\xff", 0x80),
    "uuid": Binary.from_uuid(uuid.UUID("00112233-4455-6677-8899-aabbccddeeff"), UuidRepresentation.STANDARD),
    "object_id": ObjectId("0123456789abcdef01234567"),
    "true": True,
    "false": False,
    "date": datetime.datetime(2026, 1, 2, 3, 4, 5, 678_000),
    "date_before_epoch": datetime.datetime(1901, 2, 3, 4, 5, 6, 789_000),
    "null": None,
    "regex": Regex("^a.*b$", re.IGNORECASE | re.MULTILINE),
    "code": Code("function() { return 1; }"),
    "code_with_scope": Code("function() { return x; }", {"x": 1}),
    "int32": -(2**31),
    "timestamp": Timestamp(4_000_000_000, 7),
    "int64": Int64(2**63 - 1),
    "int64_small": Int64(1),
    "decimal128": Decimal128("1.0"),
    "decimal128_nan": Decimal128("NaN"),
    "min_key": MinKey(),
    "max_key": MaxKey(),
    "ref": DBRef("things", 1),
}


def test_every_type_comes_back_byte_for_byte(things):
    document = {"_id": 1, **EVERY_TYPE}
    things.insert_one(document)
    raw = things.with_options(codec_options=bson.CodecOptions(document_class=RawBSONDocument))
    assert raw.find_one({"_id": 1}).raw == bson.encode(document)


@pytest.mark.parametrize("name", EVERY_TYPE)
def test_every_type_is_found_by_equality(things, name):
    things.insert_many([{"_id": key, "value": value} for key, value in EVERY_TYPE.items()])
    found = [document["_id"] for document in things.find({"value": {"$eq": EVERY_TYPE[name]}})]
    assert name in found
    # 1 and NumberLong(1) are equal to MongoDB; the array matches its elements too.
    assert set(found) <= {name, "int64_small", "decimal128", "array"}


@pytest.mark.parametrize("identifier", [1.5, "text", {"a": 1, "b": 2}, b"\x01", ObjectId(), False, None, Int64(2**40),
                                        datetime.datetime(2026, 1, 2), Decimal128("0.1"), MinKey(), Timestamp(1, 1)],
                         ids=repr)
def test_identifiers_of_many_types(things, identifier):
    things.insert_one({"_id": identifier})
    assert things.find_one({"_id": identifier}) == {"_id": identifier}
    assert things.delete_one({"_id": identifier}).deleted_count == 1


def test_create_read_update_delete(things):
    assert things.insert_one({"_id": 1, "n": 1}).inserted_id == 1
    assert things.insert_many([{"_id": 2}, {"_id": 3}]).inserted_ids == [2, 3]
    assert isinstance(things.insert_one({}).inserted_id, ObjectId)

    result = things.update_one({"_id": 1}, {"$inc": {"n": 1}})
    assert (result.matched_count, result.modified_count) == (1, 1)
    result = things.update_one({"_id": 1}, {"$set": {"n": 2}})
    assert (result.matched_count, result.modified_count) == (1, 0)
    result = things.update_many({}, {"$set": {"seen": True}})
    assert (result.matched_count, result.modified_count) == (4, 4)
    result = things.replace_one({"_id": 2}, {"replaced": True})
    assert result.modified_count == 1
    assert things.find_one({"_id": 2}) == {"_id": 2, "replaced": True}

    assert things.delete_one({"_id": 1}).deleted_count == 1
    assert things.delete_many({}).deleted_count == 3
    assert things.find_one() is None


@pytest.mark.parametrize("before, update, after", [
    ({"a": 1}, {"$set": {"b.c": 1}}, {"a": 1, "b": {"c": 1}}),
    ({"a": 1, "b": 2}, {"$unset": {"a": ""}}, {"b": 2}),
    ({"a": 1}, {"$inc": {"a": 2, "b": -1}}, {"a": 3, "b": -1}),
    ({"a": 2**31 - 1}, {"$inc": {"a": 1}}, {"a": 2**31}),
    ({"a": 3}, {"$mul": {"a": 2.5}}, {"a": 7.5}),
    ({"a": 3, "b": 3}, {"$min": {"a": 2}, "$max": {"b": 4}}, {"a": 2, "b": 4}),
    ({"a": 1}, {"$rename": {"a": "z"}}, {"z": 1}),
    ({"a": [1]}, {"$push": {"a": 2}}, {"a": [1, 2]}),
    ({"a": [5, 1]}, {"$push": {"a": {"$each": [3, 4], "$sort": 1, "$slice": -3}}}, {"a": [3, 4, 5]}),
    ({"a": [1, 2]}, {"$push": {"a": {"$each": [9], "$position": 0}}}, {"a": [9, 1, 2]}),
    ({"a": [1, 5, 2]}, {"$pull": {"a": {"$gt": 1}}}, {"a": [1]}),
    ({"a": [1, 2, 1]}, {"$pullAll": {"a": [1]}}, {"a": [2]}),
    ({"a": [1, 2, 3]}, {"$pop": {"a": -1}}, {"a": [2, 3]}),
    ({"a": [1]}, {"$addToSet": {"a": {"$each": [1, 2]}}}, {"a": [1, 2]}),
    ({"a": 0b1100}, {"$bit": {"a": {"and": 0b1010}}}, {"a": 0b1000}),
    ({"a": [1, 2]}, {"$inc": {"a.$[]": 1}}, {"a": [2, 3]}),
], ids=lambda value: next(iter(value)) if str(value).startswith("{'$") else "")
def test_update_operators(things, before, update, after):
    things.insert_one({"_id": 1, **before})
    things.update_one({"_id": 1}, update)
    assert things.find_one() == {"_id": 1, **after}


def test_current_date(things):
    things.insert_one({"_id": 1})
    things.update_one({}, {"$currentDate": {"date": True, "timestamp": {"$type": "timestamp"}}})
    document = things.find_one()
    assert abs(datetime.datetime.now(datetime.UTC).replace(tzinfo=None) - document["date"]) < datetime.timedelta(minutes=1)
    assert isinstance(document["timestamp"], Timestamp)


def test_positional_update_and_array_filters(things):
    things.insert_one({"_id": 1, "rows": [{"k": 1, "n": 1}, {"k": 2, "n": 2}, {"k": 3, "n": 3}]})
    things.update_one({"rows.k": 2}, {"$set": {"rows.$.n": 20}})
    things.update_one({"_id": 1}, {"$inc": {"rows.$[big].n": 100}}, array_filters=[{"big.n": {"$gte": 3}}])
    assert [row["n"] for row in things.find_one()["rows"]] == [1, 120, 103]


def test_upsert(things):
    result = things.update_one({"_id": 7, "kind": "new"}, {"$set": {"n": 1}, "$setOnInsert": {"born": True}}, upsert=True)
    assert (result.matched_count, result.upserted_id) == (0, 7)
    assert things.find_one() == {"_id": 7, "kind": "new", "n": 1, "born": True}
    result = things.update_one({"_id": 7}, {"$set": {"n": 2}, "$setOnInsert": {"born": False}}, upsert=True)
    assert (result.matched_count, result.upserted_id) == (1, None)
    assert things.find_one() == {"_id": 7, "kind": "new", "n": 2, "born": True}
    assert isinstance(things.replace_one({"absent": 1}, {"x": 1}, upsert=True).upserted_id, ObjectId)


def test_find_and_modify(things):
    things.insert_many([{"_id": i, "n": i} for i in range(4)])
    assert things.find_one_and_update({"_id": 1}, {"$inc": {"n": 10}}) == {"_id": 1, "n": 1}
    after = things.find_one_and_update({"_id": 1}, {"$inc": {"n": 10}}, return_document=ReturnDocument.AFTER)
    assert after == {"_id": 1, "n": 21}
    assert things.find_one_and_replace({"_id": 2}, {"m": 1}, return_document=ReturnDocument.AFTER) == {"_id": 2, "m": 1}
    assert things.find_one_and_delete({}, sort=[("_id", -1)], projection={"_id": 0}) == {"n": 3}
    assert things.find_one_and_update({"_id": 9}, {"$set": {"n": 9}}) is None
    upserted = things.find_one_and_update({"_id": 9}, {"$set": {"n": 9}}, upsert=True,
                                          return_document=ReturnDocument.AFTER)
    assert upserted == {"_id": 9, "n": 9}
    assert things.find_one_and_delete({"_id": 99}) is None


def test_sort_skip_limit_and_projection(things):
    things.insert_many([{"_id": i, "a": i % 3, "b": {"c": i, "d": -i}, "list": [i, i + 1, i + 2]} for i in range(10)])
    page = things.find({}, {"_id": 1}).sort([("a", -1), ("_id", 1)]).skip(2).limit(3)
    assert [document["_id"] for document in page] == [8, 1, 4]
    assert things.find_one({"_id": 1}, {"b.c": 1, "_id": 0}) == {"b": {"c": 1}}
    assert things.find_one({"_id": 1}, {"b": 0, "list": 0}) == {"_id": 1, "a": 1}
    assert things.find_one({"_id": 1}, {"list": {"$slice": -2}, "b": 0, "a": 0}) == {"_id": 1, "list": [2, 3]}
    assert things.find_one({"_id": 1}, {"list": {"$elemMatch": {"$gt": 1}}}) == {"_id": 1, "list": [2]}
    assert things.find_one({"_id": 1, "list": {"$gt": 2}}, {"list.$": 1}) == {"_id": 1, "list": [3]}


def test_filters(things):
    things.insert_many([{"_id": 1, "a": 1}, {"_id": 2, "a": [1, 2]}, {"_id": 3, "a": None}, {"_id": 4},
                        {"_id": 5, "a": "abc"}, {"_id": 6, "a": [{"x": 1, "y": 2}]}])

    def identifiers(query):
        return [document["_id"] for document in things.find(query).sort("_id")]

    assert identifiers({"a": 1}) == [1, 2]
    assert identifiers({"a": None}) == [3, 4]
    assert identifiers({"a": {"$exists": False}}) == [4]
    assert identifiers({"a": {"$ne": 1}}) == [3, 4, 5, 6]
    assert identifiers({"a": {"$in": [2, re.compile("^ab")]}}) == [2, 5]
    assert identifiers({"a": {"$type": "string"}}) == [5]
    assert identifiers({"a": {"$size": 2}}) == [2]
    assert identifiers({"a": {"$elemMatch": {"x": 1, "y": {"$gt": 1}}}}) == [6]
    assert identifiers({"a.x": 1}) == [6]
    assert identifiers({"a.0": 1}) == [2]
    assert identifiers({"a": {"$all": [1, 2]}}) == [2]
    assert identifiers({"$or": [{"a": "abc"}, {"_id": {"$lte": 1}}]}) == [1, 5]
    assert identifiers({"$nor": [{"a": {"$exists": True}}]}) == [4]
    assert identifiers({"a": {"$not": {"$gte": 1}}}) == [3, 4, 5, 6]
    assert identifiers({"a": {"$mod": [2, 0]}}) == [2]
    assert identifiers({"a": {"$regex": "B", "$options": "i"}}) == [5]


def test_counts_and_distinct(things):
    things.insert_many([{"_id": i, "a": [i % 3, "x"]} for i in range(10)])
    assert things.count_documents({}) == 10
    assert things.count_documents({"a": 1}) == 3
    assert things.count_documents({}, skip=4, limit=5) == 5
    assert things.estimated_document_count() == 10
    assert sorted(things.distinct("a"), key=str) == [0, 1, 2, "x"]
    assert sorted(things.distinct("a", {"_id": {"$lt": 2}}), key=str) == [0, 1, "x"]
