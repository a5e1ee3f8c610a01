"""Indexes: made, listed, used, dropped."""

import pytest
from pymongo import ASCENDING, DESCENDING, IndexModel
from pymongo.errors import OperationFailure


def winning_stages(explain):
    """The stages of the winning plan, outermost first."""
    stage = explain["queryPlanner"]["winningPlan"]
    while stage:
        yield stage
        stage = stage.get("inputStage")


def test_create_list_and_drop(things):
    names = things.create_indexes([
        IndexModel([("a", ASCENDING)]), IndexModel([("b", DESCENDING)]),
        IndexModel([("a", ASCENDING), ("b.c", DESCENDING)]), IndexModel("email", unique=True, name="mail"),
    ])
    assert names == ["a_1", "b_-1", "a_1_b.c_-1", "mail"]
    listed = {index["name"]: index for index in things.list_indexes()}
    assert list(listed) == ["_id_", *names]
    assert listed["a_1_b.c_-1"]["key"] == {"a": 1, "b.c": -1}
    assert listed["mail"]["unique"] is True
    assert "unique" not in listed["a_1"]
    assert things.create_index("a") == "a_1"

    things.drop_index("mail")
    things.drop_index([("a", 1)])
    assert list(things.index_information()) == ["_id_", "b_-1", "a_1_b.c_-1"]
    things.drop_indexes()
    assert list(things.index_information()) == ["_id_"]


def test_index_on_existing_documents_serves_queries(things):
    things.insert_many({"_id": i, "a": i % 10, "b": i, "tags": [i % 3, "t"]} for i in range(500))
    things.create_index([("a", 1), ("b", -1)])
    things.create_index("tags")

    explained = things.find({"a": 3, "b": {"$gte": 400}}).explain()
    stages = list(winning_stages(explained))
    assert [stage["stage"] for stage in stages] == ["FETCH", "IXSCAN"]
    assert stages[-1]["indexName"] == "a_1_b_-1"
    assert stages[-1]["isMultiKey"] is False
    assert explained["executionStats"]["nReturned"] == 10
    assert explained["executionStats"]["totalKeysExamined"] <= 12

    explained = things.find({"a": 3}).sort("b", 1).explain()
    stages = list(winning_stages(explained))
    assert [stage["stage"] for stage in stages] == ["FETCH", "IXSCAN"]
    assert stages[-1]["direction"] == "backward"
    assert [document["b"] for document in things.find({"a": 3}).sort("b", 1)][:2] == [3, 13]

    stages = list(winning_stages(things.find({"tags": 2}).explain()))
    assert (stages[-1]["stage"], stages[-1]["isMultiKey"]) == ("IXSCAN", True)
    assert things.count_documents({"tags": 2}) == 166

    stages = list(winning_stages(things.find({"b": 3}).explain()))
    assert stages[-1]["stage"] == "COLLSCAN"
    assert next(winning_stages(things.find({"_id": 3}).explain()))["stage"] in ("IDHACK", "EXPRESS_IXSCAN")


def test_hint(things):
    things.insert_many({"_id": i, "a": i, "b": i} for i in range(20))
    things.create_indexes([IndexModel("a"), IndexModel("b")])
    for hint in ("b_1", [("b", 1)]):
        stages = list(winning_stages(things.find({"a": 3, "b": 3}).hint(hint).explain()))
        assert stages[-1]["indexName"] == "b_1"
    assert list(winning_stages(things.find({"a": 3}).hint([("$natural", 1)]).explain()))[-1]["stage"] == "COLLSCAN"
    with pytest.raises(OperationFailure) as caught:
        things.find_one({"a": 3}, hint="absent")
    assert caught.value.code == 2


def test_unique_index_is_refused_on_duplicates(things):
    things.insert_many([{"a": 1}, {"a": 1}])
    with pytest.raises(OperationFailure) as caught:
        things.create_index("a", unique=True)
    assert caught.value.code == 11000
    assert caught.value.details["keyValue"] == {"a": 1}
    assert list(things.index_information()) == ["_id_"]


@pytest.mark.parametrize("code, name", [(27, "absent"), (72, "_id_")])
def test_drop_index_errors(things, code, name):
    things.insert_one({})
    with pytest.raises(OperationFailure) as caught:
        things.drop_index(name)
    assert caught.value.code == code


@pytest.mark.parametrize("options, code", [
    ({"storageEngine": {"rocksdb": {}}}, 72),
    ({"storageEngine": {"wiredTiger": 1}}, 2),
    ({"name": "a\0b"}, 67),
    ({"key": {"$**": 1}, "wildcardProjection": {"a": {"$slice": 1}}}, 51271),
    ({"key": {"$**": 1}, "wildcardProjection": {"a": 1, "a.b": 1}}, 31249),
    ({"key": {"$**": 1}, "wildcardProjection": {"a..b": 1}}, 15998),
    ({"v": 3}, 67),
    ({"v": "2"}, 14),
    ({"v": 1, "collation": {"locale": "en"}}, 67),
])
def test_hostile_options_are_refused_and_leave_nothing(things, options, code):
    index = {"key": {"a": 1}, "name": "hostile", **options}
    with pytest.raises(OperationFailure) as refused:
        things.database.command("createIndexes", things.name, indexes=[index])
    assert refused.value.code == code
    assert things.name not in things.database.list_collection_names()


def test_what_dropIndexes_takes_as_names(things):
    drop = lambda index: things.database.command("dropIndexes", things.name, index=index)
    things.create_indexes([IndexModel("a"), IndexModel("b")])
    assert drop([])["nIndexesWas"] == 3
    with pytest.raises(OperationFailure) as refused:
        drop(["*", "a_1"])
    assert refused.value.code == 27
    assert len(things.index_information()) == 3
    assert drop(["*"])["nIndexesWas"] == 3
    assert list(things.index_information()) == ["_id_"]


def test_keys_of_id_answer_alone_while_they_tell_the_type(things):
    things.insert_many({"_id": i, "pad": "x" * 100} for i in range(100))
    explained = things.find({"_id": {"$gte": 90}}, {"_id": 1}).explain()
    assert [stage["stage"] for stage in winning_stages(explained)] == ["PROJECTION_COVERED", "IXSCAN"]
    assert explained["executionStats"]["totalDocsExamined"] == 0
    assert things.distinct("_id", {"_id": {"$lt": 3}}) == [0, 1, 2]
    things.replace_one({"_id": 95}, {"_id": 95.0})
    found = [document["_id"] for document in things.find({"_id": {"$gte": 94, "$lte": 96}}, {"_id": 1})]
    assert list(map(type, found)) == [int, float, int]


def test_wildcard_index_under_conditions_on_very_many_paths(things):
    things.insert_many({"_id": i, f"a{i % 7}": i} for i in range(300))
    everything = {f"a{i}": 1 for i in range(10_000)}
    one = {**{f"a{i}": {"$not": {"$gt": 1_000}} for i in range(10_000)}, "a3": 17}
    things.create_index({"$**": 1})
    # Choosing a plan takes no longer with more indexes: the time limit would end it.
    assert list(things.find(everything, max_time_ms=20_000)) == []
    assert list(things.find(one, max_time_ms=20_000)) == [{"_id": 17, "a3": 17}]
