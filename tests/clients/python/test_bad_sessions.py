"""Sessions, transactions and resume tokens that are wrong: MongoDB's code, and nothing stays locked."""

import os
import signal
import socket
import struct
import subprocess
import sys
import uuid

import bson
import pymongo
import pytest
from bson import Binary, Int64, Timestamp
from pymongo.errors import OperationFailure


@pytest.fixture
def things(set_client):
    set_client.drop_database("clients_bad")
    things = set_client.clients_bad.things
    things.insert_many([{"_id": 1, "n": 0}, {"_id": 2, "n": 0}])
    yield things
    # After all attempts, another client must be able to write to every document at once.
    assert things.update_many({}, {"$inc": {"free": 1}}).matched_count == things.count_documents({})
    assert set_client.admin.command("serverStatus")["transactions"]["currentOpen"] == 0
    set_client.drop_database("clients_bad")


class Raw:
    """Commands with a session of one's own making, which no driver would send."""

    def __init__(self, session=None):
        address = pymongo.uri_parser.parse_uri(os.environ["BUNKO_SET_URI"])["nodelist"][0]
        self.socket = socket.create_connection(address, timeout=30)
        self.lsid = {"id": Binary(session or uuid.uuid4().bytes, 4)}

    def run(self, command, database="clients_bad"):
        body = bson.encode({**command, "$db": database})
        self.socket.sendall(struct.pack("<iiiiiB", 21 + len(body), 1, 0, 2013, 0, 0) + body)
        reply = self.socket.makefile("rb")
        (length,) = struct.unpack("<i", reply.read(4))
        return bson.decode(reply.read(length - 4)[17:])

    def code(self, command, number, database="clients_bad", **fields):
        """0 if the command succeeds."""
        if number is not None:
            fields["txnNumber"] = Int64(number) if isinstance(number, int) else number
        reply = self.run({**command, "lsid": self.lsid, **fields}, database)
        errors = reply.get("writeErrors")
        return errors[0]["code"] if errors else reply.get("code", 0)

    def statement(self, number, begins=False, document=1):
        update = {"update": "things", "updates": [{"q": {"_id": document}, "u": {"$inc": {"n": 1}}}]}
        fields = {"startTransaction": True} if begins else {}
        return self.code(update, number, autocommit=False, **fields)

    def end(self, name, number, **fields):
        return self.code({name: 1}, number, database="admin", autocommit=False, **fields)


@pytest.fixture
def raw(set_client):
    return Raw()


def test_numbers_that_are_none(things, raw):
    write = {"insert": "things", "documents": [{"_id": 9}]}
    assert raw.code(write, "1") == 14
    assert raw.code(write, 1.0) == 14
    assert raw.code(write, -1) == 72
    assert raw.code(write, 5) == 0
    assert raw.code({"insert": "things", "documents": [{"_id": 10}]}, 4) == 225, "older than the last one"
    assert raw.statement(4, begins=True) == 225
    assert raw.statement(5, begins=True) == 117, "a retryable write has the number"
    assert raw.statement(6) == 251, "none has begun"
    assert raw.end("commitTransaction", 6) == 251
    assert raw.statement(2**63 - 1, begins=True) == 0
    assert raw.end("abortTransaction", 2**63 - 1) == 0
    assert raw.statement(7, begins=True) == 225, "none comes after the largest number"
    assert things.find_one({"_id": 10}) is None


def test_fields_that_do_not_belong_together(things, raw):
    ping = {"ping": 1}
    assert raw.code(ping, None, autocommit=False) == 72
    assert raw.code(ping, None, startTransaction=True) == 72
    assert raw.code({"find": "things"}, 1, startTransaction=True) == 72
    assert raw.code({"find": "things"}, 1, autocommit=True) == 72
    assert raw.code({"find": "things"}, 1, autocommit=False, startTransaction=False) == 72
    assert raw.code({"find": "things"}, 1, autocommit=False, startTransaction=1) == 14
    assert raw.code({"count": "things"}, 1, autocommit=False, startTransaction=True) in (50851, 263)
    assert raw.end("commitTransaction", 1, startTransaction=True) == 263


def test_statements_after_the_end(things, raw):
    assert raw.statement(1, begins=True) == 0
    assert raw.end("commitTransaction", 1) == 0
    assert raw.end("commitTransaction", 1) == 0, "as often as it is sent"
    assert raw.statement(1) == 256
    assert raw.end("abortTransaction", 1) == 256
    assert raw.statement(2, begins=True) == 0
    assert raw.end("abortTransaction", 2) == 0
    assert raw.end("abortTransaction", 2) == 251
    assert raw.end("commitTransaction", 2) == 251
    assert raw.statement(2) == 251
    assert things.find_one({"_id": 1})["n"] == 1


def test_sessions_that_are_none(things, raw):
    for lsid, code in [
        (1, 14),
        ({}, 40414),
        ({"id": 1}, 14),
        ({"id": Binary(b"short", 4)}, 207),
        ({"id": Binary(uuid.uuid4().bytes, 4), "more": 1}, 40415),
        ({"id": Binary(uuid.uuid4().bytes, 4), "uid": 1}, 14),
        ({"id": Binary(uuid.uuid4().bytes, 4), "uid": Binary(b"short", 0)}, 12),
        ({"id": Binary(uuid.uuid4().bytes, 4), "uid": Binary(b"x" * 32, 0)}, 13),
    ]:
        assert raw.run({"find": "things", "lsid": lsid}).get("code") == code, lsid


def test_another_client_goes_on_in_a_session_and_ends_it(things, raw):
    assert raw.statement(1, begins=True) == 0
    # A session belongs to its user and not to a connection: any connection of the user that knows the id can use it.
    other = Raw(raw.lsid["id"])
    assert other.statement(1, document=2) == 0
    assert other.statement(0) == 225
    assert other.end("abortTransaction", 1) == 0
    assert raw.end("commitTransaction", 1) == 251
    assert things.find_one({"_id": 2})["n"] == 0


DEAD = """
import pymongo, sys, time
client = pymongo.MongoClient(sys.argv[1])
session = client.start_session()
session.start_transaction()
client.clients_bad.things.update_one({"_id": 1}, {"$inc": {"n": 1}}, session=session)
print("open", flush=True)
time.sleep(100)
"""


def test_what_a_dead_client_left_open_ends_with_its_time(things, set_client):
    set_client.admin.command({"setParameter": 1, "transactionLifetimeLimitSeconds": 2})
    try:
        dead = subprocess.Popen([sys.executable, "-c", DEAD, os.environ["BUNKO_SET_URI"]], stdout=subprocess.PIPE)
        assert dead.stdout.readline() == b"open\n"
        dead.send_signal(signal.SIGKILL)
        dead.wait()
        # A write outside the transaction waits for its end.
        assert things.update_one({"_id": 1}, {"$inc": {"n": 10}}).modified_count == 1
        assert things.find_one({"_id": 1})["n"] == 10
    finally:
        set_client.admin.command({"setParameter": 1, "transactionLifetimeLimitSeconds": 60})


def test_tokens_that_are_forged_cut_or_from_elsewhere(things, set_client, raw):
    with things.watch(max_await_time_ms=200) as stream:
        things.insert_one({"_id": 5})
        token = stream.next()["_id"]["_data"]
    elsewhere = set_client.clients_bad.elsewhere
    with elsewhere.watch(max_await_time_ms=200) as stream:
        elsewhere.insert_one({"_id": 5})
        foreign = stream.next()["_id"]["_data"]

    def code(data, **options):
        try:
            with things.watch(resume_after=data, max_await_time_ms=100, **options) as stream:
                things.insert_one({"_id": uuid.uuid4().hex})
                for _ in range(10):
                    stream.try_next()
            return 0
        except OperationFailure as failure:
            return failure.code

    assert code({"_data": token}) == 0
    assert code({"_data": foreign}) == 280, "an event of another collection"
    # A key that ends early; keys without version, kind, number, or the rest of a token; a key of another event.
    cut_codes = {15, 280, 40649, 50793, 50796, 50811, 50872, 51055, 6189500, 6189501}
    seen = {code({"_data": token[:cut]}) for cut in range(2, len(token) - 4, 2)}
    assert seen <= cut_codes, seen - cut_codes
    assert code({"_data": ""}) == 40649
    assert code({"_data": "zz"}) == 9
    assert code({"_data": "00" * 5000}) in cut_codes
    for wrong in ({}, {"_data": 1}, {"_data": None}, {"other": token}):
        assert code(wrong) in (9, 14, 40414, 40647, 50759), wrong
    later = token[:2] + "ffffff00" + token[10:]
    assert code({"_data": later}) in (0, 260, 280), "of a time that is yet to come"
    both = {"startAtOperationTime": Timestamp(1, 1), "resumeAfter": {"_data": token}}
    assert raw.run({"aggregate": "things", "pipeline": [{"$changeStream": both}], "cursor": {}})["code"] == 40674
