"""Vector search: indexes of type vectorSearch, and the stage that asks them."""

import random

import pymongo
import pytest
from bson.binary import Binary, BinaryVectorDtype
from pymongo.operations import SearchIndexModel


def index(similarity="cosine", dimensions=2, filters=("kind",), name="vectors"):
    fields = [{"type": "vector", "path": "v", "numDimensions": dimensions, "similarity": similarity}]
    fields += [{"type": "filter", "path": path} for path in filters]
    return SearchIndexModel(name=name, type="vectorSearch", definition={"fields": fields})


def search(query, limit=3, **more):
    asked = {"index": "vectors", "path": "v", "queryVector": query, "limit": limit, **more}
    if not more.get("exact"):
        asked.setdefault("numCandidates", max(limit, 100))
    return {"$vectorSearch": asked}


SCORE = {"$project": {"score": {"$meta": "vectorSearchScore"}}}


@pytest.fixture
def things(set_client):
    set_client.drop_database("clients_python_vectors")
    yield set_client.clients_python_vectors.things
    set_client.drop_database("clients_python_vectors")


def ids(cursor):
    return [document["_id"] for document in cursor]


def test_nearest_first_with_scores(things):
    things.insert_many([{"_id": 1, "v": [1.0, 0.0]}, {"_id": 2, "v": [0.0, 2.0]}, {"_id": 3, "v": [3.0, 3.0]},
                        {"_id": 4, "v": [1.0]}, {"_id": 5, "v": "no vector"}, {"_id": 6}])
    things.create_search_index(index())
    found = list(things.aggregate([search([5, 0]), SCORE]))
    assert [(document["_id"], round(document["score"], 5)) for document in found] == [(1, 1.0), (3, 0.85355), (2, 0.5)]
    assert ids(things.aggregate([search([5, 0], exact=True)])) == [1, 3, 2]
    packed = Binary.from_vector([5.0, 0.0], BinaryVectorDtype.FLOAT32)
    assert ids(things.aggregate([search(packed, limit=1)])) == [1]
    assert ids(things.aggregate([search(Binary.from_vector([5, 0], BinaryVectorDtype.INT8))])) == []


def test_bytes_and_bits(things):
    things.insert_many([{"_id": n, "v": Binary.from_vector([n, -n], BinaryVectorDtype.INT8)} for n in range(5)])
    things.create_search_index(index("euclidean"))
    assert ids(things.aggregate([search(Binary.from_vector([3, -3], BinaryVectorDtype.INT8), limit=1)])) == [3]
    things.drop_search_index("vectors")
    things.insert_many([{"_id": n, "v": Binary.from_vector([n], BinaryVectorDtype.PACKED_BIT)} for n in range(8, 16)])
    things.create_search_index(index("euclidean", 8))
    found = things.aggregate([search(Binary.from_vector([15], BinaryVectorDtype.PACKED_BIT), limit=2), SCORE])
    assert list(found) == [{"_id": 15, "score": 1.0}, {"_id": 11, "score": 0.5}]


def test_filters_come_before_the_search(things):
    things.insert_many([{"_id": n, "v": [1.0, n / 100], "kind": "odd" if n % 2 else "even", "n": n} for n in range(50)])
    things.create_search_index(index("euclidean", filters=("kind", "n")))
    assert ids(things.aggregate([search([1, 0], filter={"kind": "odd"})])) == [1, 3, 5]
    assert ids(things.aggregate([search([1, 0], filter={"n": {"$gte": 40}, "kind": {"$ne": "odd"}})])) == [40, 42, 44]
    assert ids(things.aggregate([search([1, 0], filter={"$or": [{"n": {"$in": [7, 9]}}, {"n": 3}]})])) == [3, 7, 9]
    with pytest.raises(pymongo.errors.OperationFailure) as refused:
        list(things.aggregate([search([1, 0], filter={"other": 1})]))
    assert refused.value.code == 8 and "'other' needs to be indexed as filter" in str(refused.value)


def test_what_was_written_is_found_at_once(things):
    things.insert_many([{"_id": n, "v": [float(n), 1.0]} for n in range(20)])
    things.create_search_index(index("euclidean"))
    assert ids(things.aggregate([search([0, 1])])) == [0, 1, 2]
    things.delete_one({"_id": 1})
    things.update_one({"_id": 19}, {"$set": {"v": [0.5, 1.0]}})
    things.insert_one({"_id": "new", "v": [0.25, 1.0]})
    assert ids(things.aggregate([search([0, 1], limit=4)])) == [0, "new", 19, 2]
    things.update_one({"_id": "new"}, {"$unset": {"v": 1}})
    with things.database.client.start_session() as session, session.start_transaction():
        things.insert_one({"_id": "kept back", "v": [0.0, 1.0]}, session=session)
        assert ids(things.aggregate([search([0, 1])])) == [0, 19, 2]
        session.commit_transaction()
    assert ids(things.aggregate([search([0, 1])])) == [0, "kept back", 19]


def test_an_index_that_is_updated_or_gone(things):
    things.insert_many([{"_id": 1, "v": [1.0, 0.0]}, {"_id": 2, "v": [9.0, 0.5]}])
    things.create_search_index(index("euclidean"))
    assert ids(things.aggregate([search([1, 0])])) == [1, 2]
    things.update_search_index("vectors", index("dotProduct").document["definition"])
    assert ids(things.aggregate([search([1, 0])])) == [2, 1]
    things.drop_search_index("vectors")
    assert ids(things.aggregate([search([1, 0])])) == []


def test_stages_behind_and_pipelines_around(things):
    things.insert_many([{"_id": n, "v": [1.0, n / 10], "n": n} for n in range(10)])
    things.create_search_index(index("euclidean"))
    far_first = things.aggregate([search([1, 0]), {"$set": {"score": {"$meta": "vectorSearchScore"}}},
                                  {"$sort": {"score": 1}}, {"$unset": "v"}])
    assert [document["n"] for document in far_first] == [2, 1, 0]
    union = [{"$match": {"n": 9}}, {"$unionWith": {"coll": "things", "pipeline": [search([1, 0], limit=1)]}}]
    assert ids(things.aggregate(union)) == [9, 0]
    fused = things.aggregate([{"$rankFusion": {"input": {"pipelines": {
        "near": [search([1, 0])], "late": [{"$sort": {"n": -1}}, {"$limit": 3}]}}}}])
    assert set(ids(fused)) == {0, 1, 2, 7, 8, 9}
    things.database.create_collection("pairs", viewOn="things", pipeline=[{"$match": {"n": 1}}])
    assert ids(things.database.pairs.aggregate([search([1, 0])])) == []


def test_many_vectors_agree_with_a_plain_computation(things):
    numbers = random.Random(5)
    vectors = {n: [numbers.uniform(-1, 1) for _ in range(16)] for n in range(1500)}
    things.insert_many([{"_id": n, "v": vector} for n, vector in vectors.items()])
    things.create_search_index(index("euclidean", 16))
    for _ in range(5):
        query = [numbers.uniform(-1, 1) for _ in range(16)]
        distance = lambda n: sum((a - b) ** 2 for a, b in zip(vectors[n], query))
        assert ids(things.aggregate([search(query, limit=10)])) == sorted(vectors, key=distance)[:10]
