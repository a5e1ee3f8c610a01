"""Scripts: the values that they get, the conversion of their answers, and the commands that take them."""

import datetime

import bson
import pymongo
import pytest
from bson.code import Code
from pymongo.errors import OperationFailure

NOW = datetime.datetime(2024, 5, 6, 7, 8, 9)


@pytest.fixture
def sales(things):
    things.insert_many(
        [
            {"_id": 1, "item": "pen", "price": 2, "count": 10, "day": NOW},
            {"_id": 2, "item": "pen", "price": 3, "count": 1, "long": bson.Int64(2**60)},
            {"_id": 3, "item": "ink", "price": 7.5, "count": 2, "id": bson.ObjectId("0123456789abcdef01234567")},
        ]
    )
    return things


def function(body, *arguments):
    return {"$function": {"body": body, "args": list(arguments), "lang": "js"}}


def ids(cursor):
    return sorted(document["_id"] for document in cursor)


@pytest.mark.parametrize(
    "script, expected",
    [
        ("this.price * this.count > 14", [1, 3]),
        ("obj.item == 'pen' && this.price > 2", [2]),
        ("return this.item === 'ink';", [3]),
        (Code("function() { return this.long && this.long.compare(NumberLong('1152921504606846976')) == 0 }"), [2]),
        ("this.day && this.day.getUTCFullYear() == 2024 && this.day >= ISODate('2024-05-06')", [1]),
        ("this.id instanceof ObjectId && this.id.str.startsWith('0123')", [3]),
        ("var total = 0; for (var name in this) total++; total == 5", [1, 2, 3]),
    ],
)
def test_where(sales, script, expected):
    assert ids(sales.find({"$where": script})) == expected
    assert sales.count_documents({"_id": {"$gte": 0}}) == 3
    assert sorted(sales.distinct("_id", {"$where": script})) == expected


def test_where_in_writes(sales):
    assert sales.update_many({"$where": "this.price > 2"}, {"$set": {"dear": True}}).modified_count == 2
    changed = sales.find_one_and_update({"$where": "this.count == 1"}, {"$inc": {"count": 1}}, return_document=True)
    assert changed["count"] == 2
    result = sales.bulk_write(
        [pymongo.UpdateOne({"_id": 1}, {"$set": {"a": 1}}), pymongo.DeleteMany({"$where": "this.item == 'ink'"})]
    )
    assert (result.modified_count, result.deleted_count) == (1, 1)


@pytest.mark.parametrize(
    "run, code",
    [
        (lambda c: list(c.find({"$where": "this is no JavaScript"})), 139),
        (lambda c: list(c.find({"$where": "nobody.knows"})), 139),
        (lambda c: list(c.find({"$where": 5})), 2),
        (lambda c: list(c.find({"a": {"$elemMatch": {"$where": "1"}}})), 2),
        (lambda c: list(c.aggregate([{"$match": {"$where": "1"}}])), 2),
        (lambda c: c.database.create_collection("checked", validator={"$expr": function("1")}), 4660800),
        (lambda c: c.database.create_collection("checked", validator={"$where": "1"}), 2),
        (lambda c: list(c.aggregate([{"$project": {"a": function("function() { throw 1 }")}}])), 139),
    ],
)
def test_refusals(sales, run, code):
    with pytest.raises(OperationFailure) as failure:
        run(sales)
    assert failure.value.code == code


def test_function(sales):
    found = sales.aggregate(
        [{"$sort": {"_id": 1}}, {"$project": {"all": function("function(a, b) { return a * b }", "$price", "$count")}}]
    )
    assert [document["all"] for document in found] == [20.0, 3.0, 15.0]
    same = list(sales.aggregate([{"$project": {"same": function("d => d", "$$ROOT")}}, {"$sort": {"_id": 1}}]))
    assert [document["same"] for document in same] == list(sales.find().sort("_id", 1))
    sales.update_one({"_id": 1}, [{"$set": {"made": function("x => [x, {y: NumberInt(x)}]", "$price")}}])
    assert sales.find_one(1)["made"] == [2.0, {"y": 2}]
    assert ids(sales.find({"$expr": function("x => x > 2", "$price")})) == [2, 3]


def test_accumulator(sales):
    average = {
        "init": "function(start) { return {n: 0, sum: start} }",
        "initArgs": [0],
        "accumulate": "function(s, v) { return {n: s.n + 1, sum: s.sum + v} }",
        "accumulateArgs": ["$price"],
        "merge": "function(a, b) { return {n: a.n + b.n, sum: a.sum + b.sum} }",
        "finalize": "function(s) { return s.sum / s.n }",
        "lang": "js",
    }
    stages = [{"$group": {"_id": "$item", "mean": {"$accumulator": average}}}, {"$sort": {"_id": 1}}]
    assert list(sales.aggregate(stages)) == [{"_id": "ink", "mean": 7.5}, {"_id": "pen", "mean": 2.5}]


MAP = Code("function() { emit(this.item, this.count * factor) }")
REDUCE = "function(key, values) { return Array.sum(values) }"


def map_reduce(sales, **options):
    command = {"map": MAP, "reduce": REDUCE, "scope": {"factor": 2}, **options}
    return sales.database.command("mapReduce", sales.name, **command)


def by_id(documents):
    return sorted(documents, key=lambda document: document["_id"])


def test_map_reduce_inline(sales):
    reply = map_reduce(sales, out={"inline": 1})
    assert by_id(reply["results"]) == [{"_id": "ink", "value": 4.0}, {"_id": "pen", "value": 22.0}]
    some = map_reduce(
        sales, out={"inline": 1}, query={"_id": {"$gt": 0}}, sort={"_id": -1}, limit=2, finalize="(k, v) => k + v"
    )
    assert by_id(some["results"]) == [{"_id": "ink", "value": "ink4"}, {"_id": "pen", "value": "pen2"}]


def test_map_reduce_into_collections(sales):
    totals = sales.database.totals
    assert map_reduce(sales, out="totals")["result"] == "totals"
    assert by_id(totals.find()) == [{"_id": "ink", "value": 4.0}, {"_id": "pen", "value": 22.0}]
    map_reduce(sales, out={"reduce": "totals"})
    assert by_id(totals.find()) == [{"_id": "ink", "value": 8.0}, {"_id": "pen", "value": 44.0}]
    totals.insert_one({"_id": "paper", "value": 1})
    map_reduce(sales, out={"merge": "totals"}, query={"item": "ink"})
    assert [document["value"] for document in by_id(totals.find())] == [4.0, 1, 44.0]
    map_reduce(sales, out={"replace": "totals"}, query={"item": "ink"})
    assert list(totals.find()) == [{"_id": "ink", "value": 4.0}]


@pytest.mark.parametrize(
    "options", [{}, {"out": 5}, {"out": {}}, {"out": {"inline": 1}, "map": 5}, {"out": {"inline": 1, "merge": "x"}}]
)
def test_map_reduce_refusals(sales, options):
    with pytest.raises(OperationFailure):
        map_reduce(sales, **options)


def test_explain(sales):
    explained = sales.find({"$where": "this.a"}).explain()
    assert explained["queryPlanner"]["parsedQuery"] == {"$where": Code("this.a")}
    command = {"mapReduce": sales.name, "map": MAP, "reduce": REDUCE, "out": {"inline": 1}}
    stages = sales.database.command("explain", command, verbosity="queryPlanner")["stages"]
    assert [next(iter(stage)) for stage in stages] == ["$cursor", "$unwind", "$group"]
