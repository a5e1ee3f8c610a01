"""Transactions, retries and failpoints, against the replica set of one member that BUNKO_SET_URI names.

The server takes test commands; see ../run, which starts it.
"""

import time
from contextlib import contextmanager

import pymongo
import pytest
from pymongo import ReadPreference, WriteConcern
from pymongo.errors import AutoReconnect, DuplicateKeyError, OperationFailure
from pymongo.read_concern import ReadConcern


@pytest.fixture
def accounts(set_client):
    set_client.drop_database("clients_transactions")
    accounts = set_client.clients_transactions.accounts
    accounts.insert_many([{"_id": "a", "amount": 100}, {"_id": "b", "amount": 0}])
    yield accounts
    set_client.admin.command("configureFailPoint", "failCommand", mode="off")
    set_client.drop_database("clients_transactions")


def counts(client):
    return client.admin.command("serverStatus")["transactions"]


@contextmanager
def failing(client, mode, **data):
    client.admin.command("configureFailPoint", "failCommand", mode=mode, data=data)
    yield
    client.admin.command("configureFailPoint", "failCommand", mode="off")


def amounts(accounts, **options):
    return {account["_id"]: account["amount"] for account in accounts.find({}, **options)}


def transfer(session, accounts, amount):
    accounts.update_one({"_id": "a"}, {"$inc": {"amount": -amount}}, session=session)
    accounts.update_one({"_id": "b"}, {"$inc": {"amount": amount}}, session=session)


def test_a_transfer_is_seen_whole_or_not_at_all(set_client, accounts):
    before = counts(set_client)
    with set_client.start_session() as session:
        with session.start_transaction():
            transfer(session, accounts, 30)
            assert amounts(accounts, session=session) == {"a": 70, "b": 30}
            assert amounts(accounts) == {"a": 100, "b": 0}
            assert counts(set_client)["currentOpen"] == before["currentOpen"] + 1
    assert amounts(accounts) == {"a": 70, "b": 30}
    after = counts(set_client)
    assert after["totalCommitted"] == before["totalCommitted"] + 1
    assert after["currentOpen"] == before["currentOpen"]


def test_with_transaction_commits_and_aborts(set_client, accounts):
    with set_client.start_session() as session:
        session.with_transaction(
            lambda session: transfer(session, accounts, 10),
            read_concern=ReadConcern("snapshot"),
            write_concern=WriteConcern("majority"),
            read_preference=ReadPreference.PRIMARY,
        )
        assert amounts(accounts) == {"a": 90, "b": 10}

        def fail(session):
            transfer(session, accounts, 10)
            raise ValueError("changed its mind")

        with pytest.raises(ValueError):
            session.with_transaction(fail)
    assert amounts(accounts) == {"a": 90, "b": 10}


def test_many_collections_and_databases(set_client, accounts):
    other = set_client.clients_transactions.other
    other.insert_one({"_id": 0})
    with set_client.start_session() as session, session.start_transaction():
        accounts.insert_one({"_id": "c", "amount": 1}, session=session)
        other.insert_many([{"_id": i} for i in range(1, 50)], session=session)
        other.delete_one({"_id": 0}, session=session)
        assert other.count_documents({}, session=session) == 49
        pipeline = [{"$group": {"_id": None, "sum": {"$sum": "$_id"}}}]
        assert list(other.aggregate(pipeline, session=session)) == [{"_id": None, "sum": sum(range(50))}]
        assert other.find_one_and_update({"_id": 7}, {"$set": {"x": 1}}, session=session) == {"_id": 7}
        assert other.distinct("x", session=session) == [1]
    assert other.count_documents({}) == 49 and accounts.count_documents({}) == 3


def test_a_cursor_of_a_snapshot_session_reads_on_from_its_moment(set_client, accounts):
    accounts.insert_many([{"_id": n} for n in range(10)])
    before = [document["_id"] for document in accounts.find().sort("_id", 1)]
    with set_client.start_session(snapshot=True) as session:
        accounts.find_one(session=session)
        cursors = [
            accounts.find(session=session, batch_size=2).sort("_id", 1),
            accounts.aggregate([{"$sort": {"_id": 1}}], session=session, batchSize=2),
        ]
        begun = [next(cursor) for cursor in cursors]
        accounts.delete_many({})
        for first, cursor in zip(begun, cursors):
            assert [document["_id"] for document in [first, *cursor]] == before
    assert list(accounts.find()) == []


def test_a_snapshot_does_not_move(set_client, accounts):
    with set_client.start_session() as session, session.start_transaction(read_concern=ReadConcern("snapshot")):
        assert amounts(accounts, session=session)["a"] == 100
        accounts.update_one({"_id": "a"}, {"$set": {"amount": 5}})
        assert amounts(accounts, session=session)["a"] == 100
    assert amounts(accounts)["a"] == 5


def test_the_second_of_two_conflicts_and_may_be_tried_again(set_client, accounts):
    def conflicts():
        return set_client.admin.command("serverStatus")["metrics"]["operation"]["writeConflicts"]

    before = conflicts()
    with set_client.start_session() as one, set_client.start_session() as other:
        one.start_transaction()
        accounts.update_one({"_id": "a"}, {"$set": {"amount": 1}}, session=one)
        other.start_transaction()
        with pytest.raises(OperationFailure) as conflict:
            accounts.update_one({"_id": "a"}, {"$set": {"amount": 2}}, session=other)
        assert conflict.value.code == 112
        assert conflict.value.has_error_label("TransientTransactionError")
        assert conflicts() > before
        other.abort_transaction()
        one.commit_transaction()
    assert amounts(accounts)["a"] == 1


def test_a_statement_that_fails_aborts_the_transaction(set_client, accounts):
    with set_client.start_session() as session:
        session.start_transaction()
        accounts.insert_one({"_id": "c"}, session=session)
        with pytest.raises(DuplicateKeyError):
            accounts.insert_one({"_id": "a"}, session=session)
        with pytest.raises(OperationFailure) as over:
            accounts.find_one({}, session=session)
        assert over.value.code == 251 and over.value.has_error_label("TransientTransactionError")
    assert accounts.count_documents({}) == 2


def test_a_commit_whose_reply_is_lost_is_sent_again(set_client, accounts):
    before = counts(set_client)["totalCommitted"]
    with set_client.start_session() as session:
        session.start_transaction()
        transfer(session, accounts, 1)
        with failing(set_client, {"times": 1}, failCommands=["commitTransaction"], closeConnection=True):
            session.commit_transaction()
        # A client that received no answer sends the commit again.
        session.commit_transaction()
    assert amounts(accounts) == {"a": 99, "b": 1}
    assert counts(set_client)["totalCommitted"] == before + 1


def test_labels_of_commits_and_statements(set_client, accounts):
    with set_client.start_session() as session:
        session.start_transaction()
        transfer(session, accounts, 1)
        with failing(set_client, {"times": 2}, failCommands=["commitTransaction"], errorCode=262):
            with pytest.raises((AutoReconnect, OperationFailure)) as unknown:
                session.commit_transaction()
        assert unknown.value.has_error_label("UnknownTransactionCommitResult")
        session.commit_transaction()
        session.start_transaction()
        with failing(set_client, {"times": 1}, failCommands=["insert"], closeConnection=True):
            with pytest.raises(AutoReconnect) as lost:
                accounts.insert_one({"_id": "c"}, session=session)
        assert lost.value.has_error_label("TransientTransactionError")
        session.abort_transaction()
    assert amounts(accounts) == {"a": 99, "b": 1}


def test_with_transaction_tries_again_after_transient_errors(set_client, accounts):
    calls = []

    def twice(session):
        calls.append(1)
        transfer(session, accounts, 1)

    with set_client.start_session() as session:
        with failing(set_client, {"times": 1}, failCommands=["update"], errorCode=112):
            session.with_transaction(twice)
    assert len(calls) == 2 and amounts(accounts) == {"a": 99, "b": 1}


def test_what_is_open_for_too_long_is_aborted(set_client, accounts):
    admin = set_client.admin
    was = admin.command("setParameter", 1, transactionLifetimeLimitSeconds=1)["was"]
    try:
        with set_client.start_session() as session:
            session.start_transaction()
            accounts.update_one({"_id": "a"}, {"$set": {"amount": 1}}, session=session)
            idle = [op for op in admin.command("currentOp")["inprog"] if op["type"] == "idleSession"]
            assert any(op["transaction"]["parameters"]["autocommit"] is False for op in idle)
            # A write that waits for the document then goes on.
            accounts.update_one({"_id": "a"}, {"$set": {"amount": 2}})
            with pytest.raises(OperationFailure) as over:
                session.commit_transaction()
            assert over.value.code == 251
    finally:
        admin.command("setParameter", 1, transactionLifetimeLimitSeconds=was)
    assert amounts(accounts)["a"] == 2


def test_sessions_that_are_killed_leave_nothing_open(set_client, accounts):
    with set_client.start_session() as session:
        session.start_transaction()
        transfer(session, accounts, 50)
        set_client.admin.command("killSessions", [session.session_id])
        with pytest.raises(OperationFailure) as over:
            session.commit_transaction()
        assert over.value.code == 251
    assert amounts(accounts) == {"a": 100, "b": 0}


def test_a_cursor_of_a_transaction_ends_with_it(set_client, accounts):
    accounts.insert_many([{"_id": i, "amount": 0} for i in range(10)])
    with set_client.start_session() as session:
        session.start_transaction()
        cursor = accounts.find({}, batch_size=2, session=session)
        next(cursor)
        session.commit_transaction()
        with pytest.raises(OperationFailure):
            list(cursor)


def test_a_retryable_write_whose_connection_is_closed_is_done_once(set_client, accounts):
    with failing(set_client, {"times": 1}, failCommands=["update"], closeConnection=True):
        accounts.update_one({"_id": "a"}, {"$inc": {"amount": 1}})
    assert amounts(accounts)["a"] == 101


def test_a_change_stream_goes_on_after_an_error(set_client, accounts):
    with accounts.watch(max_await_time_ms=200) as stream:
        set_client.admin.command(
            "configureFailPoint", "failGetMoreAfterCursorCheckout", mode={"times": 1}, data={"errorCode": 6}
        )
        accounts.insert_one({"_id": "c", "amount": 0})
        assert stream.next()["documentKey"] == {"_id": "c"}


def test_a_command_that_is_held_up_times_out(set_client, accounts):
    with failing(set_client, "alwaysOn", failCommands=["find"], blockConnection=True, blockTimeMS=2000):
        began = time.monotonic()
        with pytest.raises(pymongo.errors.ExecutionTimeout):
            list(accounts.find({}, max_time_ms=50))
        assert time.monotonic() - began < 2
        list(accounts.find({}))
        assert time.monotonic() - began >= 2
