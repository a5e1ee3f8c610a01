"""Cursors: batches, getMore, killCursors."""

import socket
import struct
import time
from pathlib import Path
from urllib.parse import quote_plus

import bson
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
    unix = Path(f"/tmp/mongodb-{client.address[1]}.sock")
    if not unix.exists():
        pytest.skip(f"no other way to the server: there is no {unix}")
    things.insert_many({"_id": i, "pad": "x" * 200} for i in range(1000))
    resident_mb = lambda: client.admin.command("serverStatus")["mem"]["resident"]
    before_mb = resident_mb()
    with client.start_session() as session:
        with pytest.raises(OperationFailure, match="cursors of this client are open already") as caught:
            for _ in range(CLIENT_CURSORS_MAX + 1):
                things.database.command({"find": "things", "batchSize": 1}, session=session)
        assert caught.value.code == 96
        with pymongo.MongoClient(f"mongodb://{quote_plus(str(unix))}", directConnection=True) as other:
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


EXHAUST_ALLOWED, MORE_TO_COME = 1 << 16, 1 << 1


def read_reply(socket):
    """Request id, the id that it answers, flags and document of one OP_MSG."""
    header = read_bytes(socket, 16)
    length, request, answers, _ = struct.unpack("<iiii", header)
    content = read_bytes(socket, length - 16)
    return request, answers, struct.unpack("<I", content[:4])[0], bson.decode(content[5:])


def read_bytes(socket, count):
    read = b""
    while len(read) < count:
        some = socket.recv(count - len(read))
        assert some, "the server has closed the connection"
        read += some
    return read


def send(socket, request, flags, command):
    body = struct.pack("<IB", flags, 0) + bson.encode(command)
    socket.sendall(struct.pack("<iiii", 16 + len(body), request, 0, 2013) + body)


def test_exhaust_cursor(things):
    things.insert_many({"_id": i, "pad": "x" * 100} for i in range(10_000))
    cursor = things.find(cursor_type=CursorType.EXHAUST, batch_size=100)
    assert [document["_id"] for document in cursor] == list(range(10_000))
    # The connection still works afterwards.
    assert things.find_one({"_id": 5})["_id"] == 5


def test_batches_of_an_exhaust_get_more_follow_each_other(client, things):
    things.insert_many({"_id": i} for i in range(35))
    name = things.database.name
    with socket.create_connection(client.address, timeout=10) as connection:
        send(connection, 7, EXHAUST_ALLOWED, {"find": "things", "batchSize": 5, "$db": name})
        _, answers, flags, first = read_reply(connection)
        assert (answers, flags & MORE_TO_COME) == (7, 0), "a find has one reply"
        more = {"getMore": Int64(first["cursor"]["id"]), "collection": "things", "batchSize": 10, "$db": name}
        send(connection, 40, EXHAUST_ALLOWED, more)
        answered, seen = 40, []
        while True:
            request, answers, flags, reply = read_reply(connection)
            assert answers == answered, "each answers the one before it"
            answered = request
            seen += [document["_id"] for document in reply["cursor"]["nextBatch"]]
            assert bool(flags & MORE_TO_COME) == (reply["cursor"]["id"] != 0)
            if not flags & MORE_TO_COME:
                break
        assert seen == list(range(5, 35))
        # Without the flag there is one reply to each request.
        send(connection, 50, 0, {"find": "things", "batchSize": 5, "$db": name})
        more["getMore"] = Int64(read_reply(connection)[3]["cursor"]["id"])
        send(connection, 51, 0, more)
        _, answers, flags, reply = read_reply(connection)
        assert (answers, flags & MORE_TO_COME, len(reply["cursor"]["nextBatch"])) == (51, 0, 10)
        send(connection, 52, 0, {"ping": 1, "$db": name})
        assert read_reply(connection)[1] == 52


def test_an_exhaust_cursor_goes_with_a_client_that_reads_no_more(client, things):
    things.insert_many({"_id": i, "pad": "x" * 10_000} for i in range(5_000))
    open_cursors = lambda: client.admin.command("serverStatus")["metrics"]["cursor"]["open"]["total"]
    before = open_cursors()
    with socket.create_connection(client.address, timeout=10) as connection:
        name = things.database.name
        send(connection, 1, 0, {"find": "things", "batchSize": 1, "$db": name})
        more = {"getMore": Int64(read_reply(connection)[3]["cursor"]["id"]), "collection": "things", "batchSize": 10}
        send(connection, 2, EXHAUST_ALLOWED, more | {"$db": name})
        read_reply(connection)
        assert open_cursors() == before + 1
    for _ in range(100):
        if open_cursors() == before:
            return
        time.sleep(0.1)
    pytest.fail("the cursor is open still")


def test_failure_ends_an_exhaust_cursor(client, things):
    things.insert_many({"_id": i} for i in range(20))
    with socket.create_connection(client.address, timeout=10) as connection:
        name = things.database.name
        more = {"getMore": Int64(12345), "collection": "things", "$db": name}
        send(connection, 1, EXHAUST_ALLOWED, more)
        _, _, flags, reply = read_reply(connection)
        assert (flags & MORE_TO_COME, reply["code"]) == (0, 43)
