"""The collections that tools read about sessions: config.transactions and config.system.sessions, on the set that BUNKO_SET_URI names."""

import datetime

import pymongo
import pytest
from bson import Binary, Timestamp
from bson.int64 import Int64
from pymongo.errors import OperationFailure


@pytest.fixture
def written(set_client):
    set_client.drop_database("clients_sessions")
    yield set_client.clients_sessions.written
    set_client.drop_database("clients_sessions")


def last_write(client, session):
    found = list(client.config.transactions.find({"_id.id": session.session_id["id"]}))
    assert len(found) <= 1
    return found[0] if found else None


def last_entry(client):
    return next(client.local["oplog.rs"].find().sort("$natural", pymongo.DESCENDING).limit(1))


def test_a_retryable_write_and_a_transaction_are_seen_with_their_times(set_client, written):
    with set_client.start_session() as session:
        # The driver takes the session from its pool: another test may have written in it.
        before = last_write(set_client, session)
        written.find_one(session=session)
        assert last_write(set_client, session) == before
        written.insert_one({"_id": 1}, session=session)
        entry, retryable = last_entry(set_client), last_write(set_client, session)
        assert list(retryable) == ["_id", "txnNum", "lastWriteOpTime", "lastWriteDate"]
        assert retryable["_id"]["id"] == session.session_id["id"]
        assert isinstance(retryable["_id"]["uid"], bytes) and len(retryable["_id"]["uid"]) == 32
        assert isinstance(retryable["txnNum"], Int64)
        assert isinstance(retryable["lastWriteOpTime"]["ts"], Timestamp)
        assert retryable["lastWriteOpTime"] == {"ts": entry["ts"], "t": entry["t"]}
        assert retryable["lastWriteDate"] == entry["wall"]
        age = datetime.datetime.now(datetime.UTC).replace(tzinfo=None) - retryable["lastWriteDate"]
        assert abs(age) < datetime.timedelta(minutes=1)

        with session.start_transaction():
            written.insert_many([{"_id": 2}, {"_id": 3}], session=session)
            # An open transaction has written nothing yet.
            assert last_write(set_client, session) == retryable
        entry, committed = last_entry(set_client), last_write(set_client, session)
        assert committed["state"] == "committed" and committed["txnNum"] > retryable["txnNum"]
        assert committed["txnNum"] == entry["txnNumber"]
        assert committed["lastWriteOpTime"]["ts"] == entry["ts"] > retryable["lastWriteOpTime"]["ts"]

        session.start_transaction()
        written.insert_one({"_id": 4}, session=session)
        session.abort_transaction()
        assert last_write(set_client, session) == committed


def test_a_long_transaction_has_the_time_of_its_last_entry(set_client, written):
    with set_client.start_session() as session:
        with session.start_transaction():
            written.insert_many([{"_id": number, "pad": "x" * (1 << 20)} for number in range(40)], session=session)
        entry, committed = last_entry(set_client), last_write(set_client, session)
        # The transaction made the collection too.
        assert entry["o"]["count"] == 41
        assert committed["lastWriteOpTime"]["ts"] == entry["ts"]


def test_sessions_are_found_counted_and_grouped(set_client, written):
    sessions = set_client.config["system.sessions"]
    with set_client.start_session() as session:
        written.insert_one({}, session=session)
        found = sessions.find_one({"_id.id": session.session_id["id"]})
        assert list(found) == ["_id", "lastUse"] and isinstance(found["lastUse"], datetime.datetime)
        assert sessions.count_documents({"_id": found["_id"]}) == 1
        assert found["_id"] in [session["_id"] for session in sessions.find(batch_size=1)]
        listed = sessions.aggregate([{"$listSessions": {"allUsers": True}}])
        assert found["_id"] in [session["_id"] for session in listed]
        known = set_client.config.transactions.aggregate([
            {"$match": {"_id": found["_id"]}},
            {"$lookup": {"from": "system.sessions", "localField": "_id", "foreignField": "_id", "as": "known"}},
        ])
        assert [session["known"][0]["_id"] for session in known] == [found["_id"]]
        assert set_client.config.transactions.estimated_document_count() > 0
        assert Binary(session.session_id["id"], 4) in set_client.config.transactions.distinct("_id.id")


def test_they_are_listed_and_not_written(set_client):
    assert "config" in set_client.list_database_names()
    assert {"system.sessions", "transactions"} <= set(set_client.config.list_collection_names())
    for write in [
        lambda: set_client.config.transactions.insert_one({"_id": 1}),
        lambda: set_client.config.transactions.delete_many({}),
        lambda: set_client.config["system.sessions"].update_one({}, {"$set": {"a": 1}}),
        lambda: set_client.config["system.sessions"].create_index("lastUse"),
        lambda: set_client.config.drop_collection("transactions"),
    ]:
        with pytest.raises(OperationFailure) as refused:
            write()
        assert refused.value.code == 115
    with pytest.raises(OperationFailure) as refused:
        set_client.config.transactions.create_index("txnNum")
    assert refused.value.code == 20
