"""Handshake, compression, write concern, sessions, administration."""

import threading

import pymongo
import pytest
from conftest import URI
from pymongo.errors import OperationFailure, WriteConcernError
from pymongo.write_concern import WriteConcern


def test_handshake(client):
    hello = client.admin.command("hello")
    assert hello["isWritablePrimary"] is True
    assert hello["maxBsonObjectSize"] == 16_777_216
    assert hello["maxMessageSizeBytes"] == 48_000_000
    assert hello["maxWriteBatchSize"] == 100_000
    assert hello["logicalSessionTimeoutMinutes"] == 30
    assert client.admin.command("ping") == {"ok": 1.0}
    assert client.server_info()["versionArray"][0] >= 8


@pytest.mark.parametrize("compressor", ["zlib", "snappy", "zstd"])
def test_compression(client, database, compressor):
    assert client.admin.command("hello", compression=[compressor])["compression"] == [compressor]
    with pymongo.MongoClient(URI, compressors=compressor) as compressed:
        things = compressed.clients_python.things
        things.insert_many({"_id": i, "pad": "x" * 1_000} for i in range(2_000))
        assert sum(len(document["pad"]) for document in things.find()) == 2_000_000


@pytest.mark.parametrize("options", [{"w": 1}, {"j": True}, {"w": "majority"}, {"w": "majority", "j": True, "wtimeout": 1_000}],
                         ids=str)
def test_write_concerns_that_a_single_node_meets(database, options):
    things = database.get_collection("things", write_concern=WriteConcern(**options))
    assert things.insert_one({"_id": 1}).acknowledged
    assert things.update_one({"_id": 1}, {"$set": {"a": 1}}).modified_count == 1
    assert things.delete_one({"_id": 1}).deleted_count == 1


def test_unacknowledged_write_arrives(things):
    unacknowledged = things.with_options(write_concern=WriteConcern(w=0))
    assert not unacknowledged.insert_many([{"_id": i} for i in range(100)]).acknowledged
    unacknowledged.insert_one({"_id": 0})  # a duplicate: the error has nobody to go to
    unacknowledged.update_one({"_id": 1}, {"$set": {"a": 1}})
    # Writes with w: 0 may use another connection than the read, so the test waits for the last one.
    for _ in range(1_000):
        if things.count_documents({}) == 100 and things.find_one({"_id": 1, "a": 1}):
            return
    pytest.fail(f"{things.count_documents({})} documents")


def test_unsatisfiable_write_concern_is_refused(database):
    things = database.get_collection("things", write_concern=WriteConcern(w=2, wtimeout=1_000))
    with pytest.raises((WriteConcernError, OperationFailure)) as caught:
        things.insert_one({})
    # 2 (BadValue) from a server that stands alone, 100 (UnsatisfiableWriteConcern) from a replica set.
    assert caught.value.code in (2, 100)


def test_read_concerns(database):
    database.things.insert_one({"_id": 1})
    for level in ("local", "available", "majority"):
        things = database.get_collection("things", read_concern=pymongo.read_concern.ReadConcern(level))
        assert things.find_one() == {"_id": 1}


def test_session_reads_its_own_writes(client, things):
    with client.start_session(causal_consistency=True) as session:
        things.insert_one({"_id": 1}, session=session)
        assert things.find_one({"_id": 1}, session=session) == {"_id": 1}
        assert [document["_id"] for document in things.find(session=session)] == [1]


def test_databases_and_collections(client, database):
    database.create_collection("empty")
    database.full.insert_one({"a": 1})
    assert sorted(database.list_collection_names()) == ["empty", "full"]
    assert database.list_collection_names(filter={"name": "full"}) == ["full"]
    info = next(iter(database.list_collections(filter={"name": "full"})))
    assert (info["type"], info["idIndex"]["name"]) == ("collection", "_id_")
    assert "clients_python" in client.list_database_names()
    assert database.command("dbStats")["collections"] == 2
    assert database.command("collStats", "full")["count"] == 1
    assert database.validate_collection("full")["valid"] is True
    database.full.drop()
    database.full.drop()
    client.drop_database("clients_python")
    assert "clients_python" not in client.list_database_names()


def test_monitors_stay_connected(client):
    """The streaming heartbeat (hello with maxAwaitTimeMS) answers again and again."""
    heartbeats, enough = [], threading.Event()

    class Listener(pymongo.monitoring.ServerHeartbeatListener):
        def started(self, event):
            pass

        def succeeded(self, event):
            heartbeats.append(event)
            if len(heartbeats) >= 3:
                enough.set()

        def failed(self, event):
            pass

    with pymongo.MongoClient(URI, heartbeatFrequencyMS=500, event_listeners=[Listener()]) as monitored:
        monitored.admin.command("ping")
        assert enough.wait(timeout=15)


def test_many_threads(client, things):
    def work(thread):
        for i in range(50):
            things.insert_one({"_id": f"{thread}/{i}"})

    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert things.count_documents({}) == 16 * 50
