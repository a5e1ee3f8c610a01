"""Statistics of queries by shape: what a driver counts, over batches and cursors that are left, and with hidden names."""

import base64
import hashlib
import hmac

import pymongo
import pytest
from bson.binary import Binary
from bson.decimal128 import Decimal128
from pymongo.errors import OperationFailure

from conftest import URI


@pytest.fixture
def counted(client, things):
    """A client of its own, whose queries alone have its name."""
    things.insert_many([{"_id": n, "kind": n % 5} for n in range(1000)])
    client.admin.command("setParameter", 1, internalQueryStatsRateLimit=-1)
    with pymongo.MongoClient(URI, appname="counted") as own:
        yield own[things.database.name].things
    client.admin.command("setParameter", 1, internalQueryStatsRateLimit=0)
    client.admin.command("setParameter", 1, internalQueryStatsCacheSize="0MB")
    client.admin.command("setParameter", 1, internalQueryStatsCacheSize="1%")


def entries(client, command, **options):
    all_entries = client.admin.aggregate([{"$queryStats": options}])
    return [entry for entry in all_entries
            if entry["key"]["queryShape"]["command"] == command
            and entry["key"]["client"].get("application", {}).get("name") == "counted"]


def test_a_query_counts_once_with_all_its_batches(client, counted):
    for kind in (1, 2):
        assert len(list(counted.find({"kind": {"$gte": kind}}).batch_size(100))) == 1000 - 200 * kind
    (entry,) = entries(client, "find")
    key, metrics = entry["key"], entry["metrics"]
    assert key["queryShape"] == {
        "cmdNs": {"db": "clients_python", "coll": "things"}, "command": "find", "filter": {"kind": {"$gte": "?number"}}}
    assert (key["batchSize"], key["collectionType"]) == ("?number", "collection")
    assert key["client"]["driver"]["name"].startswith("PyMongo")
    assert metrics["execCount"] == 2
    assert metrics["docsReturned"] == {"sum": 1400, "max": 800, "min": 600, "sumOfSquares": Decimal128("1000000")}
    assert metrics["docsExamined"]["sum"] == 2000
    assert metrics["totalExecMicros"]["sum"] >= metrics["firstResponseExecMicros"]["sum"] > 0
    assert metrics["firstSeenTimestamp"] <= metrics["latestSeenTimestamp"]
    assert metrics["hasSortStage"] == {"true": 0, "false": 2}
    hash_of_settings = client.clients_python.command(
        "explain", {"find": "things", "filter": {"kind": {"$gte": 7}}})["queryShapeHash"]
    assert entry["queryShapeHash"] == hash_of_settings


def test_a_cursor_that_is_left_counts_when_it_is_closed(client, counted):
    cursor = counted.find().batch_size(10)
    next(cursor)
    assert entries(client, "find") == []
    cursor.close()
    (entry,) = entries(client, "find")
    assert entry["metrics"]["docsReturned"]["sum"] == 10


def test_counts_distinct_values_and_pipelines_are_counted(client, counted):
    counted.distinct("kind", {"kind": {"$lt": 3}})
    counted.aggregate([{"$group": {"_id": "$kind", "n": {"$sum": 1}}}, {"$sort": {"n": 1}}]).to_list()
    counted.estimated_document_count()
    (distinct,), (pipeline,), (count,) = (entries(client, name) for name in ("distinct", "aggregate", "count"))
    assert distinct["key"]["queryShape"]["key"] == "kind"
    assert pipeline["key"]["queryShape"]["pipeline"][0] == {"$group": {"_id": "$kind", "n": {"$sum": "?number"}}}
    assert pipeline["metrics"]["docsReturned"]["sum"] == 5
    assert count["metrics"]["execCount"] == 1
    status = client.admin.command("serverStatus")["metrics"]["queryStats"]
    assert status["numEntries"] >= 3 and status["queryStatsStoreSizeEstimateBytes"] > 0


def test_names_are_hidden_by_the_key(client, counted):
    list(counted.find({"kind": 3}).sort("kind", 1).hint([("_id", 1)]))
    hidden = {"algorithm": "hmac-sha-256", "hmacKey": Binary(b"a secret", 8)}
    (entry,) = entries(client, "find", transformIdentifiers=hidden)

    def name(text):
        return base64.b64encode(hmac.new(b"a secret", text.encode(), hashlib.sha256).digest()).decode()

    assert entry["key"]["queryShape"] == {
        "cmdNs": {"db": name("clients_python"), "coll": name("things")}, "command": "find",
        "filter": {name("kind"): {"$eq": "?number"}}, "sort": {name("kind"): 1}}
    assert entry["key"]["hint"] == {name("_id"): 1}
    with pytest.raises(OperationFailure) as refused:
        client.admin.aggregate([{"$queryStats": {"transformIdentifiers": {"algorithm": "hmac-sha-256"}}}])
    assert refused.value.code == 40414
