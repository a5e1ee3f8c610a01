"""Events that meet an open transaction: other sessions, changes of its collection, the end of its session, its own size."""

import threading

import pytest
from bson import Int64
from test_bad_sessions import Raw, raw, things  # noqa: F401


def inside(raw, command, number, database="clients_bad", **fields):
    return raw.run({**command, "lsid": raw.lsid, "txnNumber": Int64(number), "autocommit": False, **fields}, database)


def test_a_cursor_of_a_transaction_is_nobody_elses(things, raw):
    cursor = inside(raw, {"find": "things", "batchSize": 1}, 1, startTransaction=True)["cursor"]["id"]
    more = {"getMore": cursor, "collection": "things", "batchSize": 0}
    other = Raw()
    assert raw.run(more)["code"] == 50737
    assert other.run({**more, "lsid": other.lsid})["code"] == 50738
    assert inside(raw, more, 1)["ok"] == 1
    assert inside(raw, {"abortTransaction": 1}, 1, "admin")["ok"] == 1
    assert raw.run(more)["code"] == 43


def test_changes_of_a_collection_wait_for_its_transactions(things, raw):
    update = {"update": "things", "updates": [{"q": {"_id": 1}, "u": {"$inc": {"n": 1}}}]}
    assert inside(raw, update, 1, startTransaction=True)["ok"] == 1
    other = Raw()
    for command in [
        {"drop": "things"},
        {"createIndexes": "things", "indexes": [{"key": {"n": 1}, "name": "n"}]},
        {"collMod": "things", "validationLevel": "off"},
        {"dropDatabase": 1},
    ]:
        assert other.run({**command, "maxTimeMS": 100})["code"] == 50, command
    assert inside(raw, {"commitTransaction": 1}, 1, "admin")["ok"] == 1
    assert things.find_one({"_id": 1})["n"] == 1


def test_a_session_that_is_killed_takes_its_transaction_along(things, raw):
    update = {"update": "things", "updates": [{"q": {"_id": 1}, "u": {"$inc": {"n": 1}}}]}
    assert inside(raw, update, 1, startTransaction=True)["ok"] == 1
    assert Raw().run({"killSessions": [raw.lsid]}, "admin")["ok"] == 1
    assert inside(raw, {"find": "things"}, 1)["code"] == 251
    assert inside(raw, {"commitTransaction": 1}, 1, "admin")["code"] == 251
    assert things.find_one({"_id": 1})["n"] == 0


def test_two_commits_at_once_are_one(things, raw):
    other = Raw(raw.lsid["id"])
    assert inside(raw, {"insert": "things", "documents": [{"_id": 3}]}, 1, startTransaction=True)["ok"] == 1
    replies = []
    commits = [
        threading.Thread(target=lambda by=by: replies.append(inside(by, {"commitTransaction": 1}, 1, "admin")["ok"]))
        for by in (raw, other)
    ]
    for commit in commits:
        commit.start()
    for commit in commits:
        commit.join()
    assert replies == [1, 1]
    assert things.count_documents({"_id": 3}) == 1


def test_more_than_a_message_holds_and_more_than_it_may_take(things, raw, set_client):
    def insert(number, first):
        for place in range(20):
            begins = {"startTransaction": True} if place == 0 else {}
            document = {"_id": first + place, "text": "x" * 1_000_000}
            reply = inside(raw, {"insert": "things", "documents": [document]}, number, **begins)
            if reply["ok"] != 1:
                return reply["code"]
        return inside(raw, {"commitTransaction": 1}, number, "admin").get("code", 0)

    assert insert(1, 1000) == 0
    assert things.count_documents({"_id": {"$gte": 1000}}) == 20
    limit = set_client.admin.command({"getParameter": 1, "transactionMemoryLimitBytes": 1})["transactionMemoryLimitBytes"]
    set_client.admin.command({"setParameter": 1, "transactionMemoryLimitBytes": 5_000_000})
    try:
        assert insert(2, 2000) == 257
    finally:
        set_client.admin.command({"setParameter": 1, "transactionMemoryLimitBytes": limit})
    assert inside(raw, {"commitTransaction": 1}, 2, "admin")["code"] == 251
    assert things.count_documents({"_id": {"$gte": 2000}}) == 0


@pytest.mark.parametrize("numbers", [[0, 1, 2], [5, 9, 10], [7, 6, 5]])
def test_statements_that_were_numbered_by_the_client(things, raw, numbers):
    write = {"insert": "things", "documents": [{"_id": 10 + place} for place in range(3)], "stmtIds": numbers}
    write |= {"lsid": raw.lsid, "txnNumber": Int64(1)}
    assert raw.run(write)["n"] == 3
    again = raw.run(write)
    assert (again["n"], again["retriedStmtIds"]) == (3, numbers)
    assert raw.run({**write, "stmtIds": numbers[:2]})["code"] == 16
    assert things.count_documents({"_id": {"$gte": 10}}) == 3
