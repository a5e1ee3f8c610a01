"""Query settings, against the replica set of one member that BUNKO_SET_URI names; and the answers of a standalone server."""

import pytest
from pymongo.errors import OperationFailure

NAME = "clients_query_settings"


@pytest.fixture
def orders(set_client):
    set_client.drop_database(NAME)
    orders = set_client[NAME].orders
    orders.insert_many([{"_id": n, "kind": n % 5, "total": n} for n in range(100)])
    orders.create_index("kind")
    orders.create_index([("kind", 1), ("total", 1)])
    yield orders
    for set_ in set_client.admin.aggregate([{"$querySettings": {}}]):
        set_client.admin.command("removeQuerySettings", set_["queryShapeHash"])
    set_client.drop_database(NAME)


def shape(orders, **query):
    return {"find": orders.name, "$db": orders.database.name, **query}


def index_used(orders, filter):
    explained = orders.database.command("explain", {"find": orders.name, "filter": filter}, verbosity="queryPlanner")
    stage = explained["queryPlanner"]["winningPlan"]
    while "inputStage" in stage:
        stage = stage["inputStage"]
    return stage.get("indexName", stage["stage"]), explained


def test_index_hints_hold_for_all_values_of_a_shape(set_client, orders):
    for allowed in ("kind_1", "kind_1_total_1"):
        hints = [{"ns": {"db": NAME, "coll": "orders"}, "allowedIndexes": [allowed]}]
        set_ = set_client.admin.command(
            "setQuerySettings", shape(orders, filter={"kind": 1}), settings={"indexHints": hints, "comment": "a test"})
        used, explained = index_used(orders, {"kind": 4})
        assert (used, explained["queryShapeHash"]) == (allowed, set_["queryShapeHash"])
        assert explained["queryPlanner"]["querySettings"]["comment"] == "a test"
        assert len(list(orders.find({"kind": 4}).hint("kind_1"))) == 20
    shown = list(set_client.admin.aggregate([{"$querySettings": {"showDebugQueryShape": True}}]))
    assert [document["debugQueryShape"]["filter"] for document in shown] == [{"kind": {"$eq": "?number"}}]


def test_a_rejected_shape_is_refused_and_no_other(set_client, orders):
    set_client.admin.command("setQuerySettings", shape(orders, filter={"total": {"$gt": 1}}), settings={"reject": True})
    with pytest.raises(OperationFailure) as refused:
        list(orders.find({"total": {"$gt": 70}}))
    assert refused.value.code == 411
    assert orders.count_documents({"total": {"$gt": 70}}) == 29
    assert len(list(orders.find({"total": {"$gte": 70}}))) == 30
    set_client.admin.command("removeQuerySettings", shape(orders, filter={"total": {"$gt": 5}}))
    assert len(list(orders.find({"total": {"$gt": 70}}))) == 29


def test_a_server_alone_takes_none_and_builds_indexes_anew(client, database):
    with pytest.raises(OperationFailure) as refused:
        client.admin.command("setQuerySettings", {"find": "c", "$db": NAME}, settings={"reject": True})
    assert refused.value.code == 20
    database.things.insert_many([{"n": n, "tags": [n, n + 1]} for n in range(500)])
    database.things.create_index("n", unique=True)
    database.things.create_index("tags")
    rebuilt = database.command("reIndex", "things")
    assert [index["name"] for index in rebuilt["indexes"]] == ["_id_", "n_1", "tags_1"]
    assert database.things.count_documents({"tags": 7}) == 2
    assert database.command("validate", "things", full=True)["valid"]
