"""Stages with little memory: they go to disk, explain says so, and the answer is the same."""

import pytest
from pymongo.errors import OperationFailure

PARAMETERS = [
    "internalDocumentSourceBucketAutoMaxMemoryBytes",
    "internalDocumentSourceGroupMaxMemoryBytes",
    "internalDocumentSourceLookupCacheSizeBytes",
    "internalDocumentSourceSetWindowFieldsMaxMemoryBytes",
    "internalQueryMaxBlockingSortMemoryUsageBytes",
]
FIGURES = ["usedDisk", "spills", "spilledRecords", "spilledBytes", "spilledDataStorageSize"]
COUNT = 1500
# A quarter of the documents' size, and more than the keys of a joined collection, which stay in memory.
LIMIT_BYTES = 120_000

# The results depend on every document and its place, and on nothing else.
PIPELINES = {
    # A sort by a computed field is a stage of its own.
    "$sort": [{"$match": {"k": {"$gte": 0}}}, {"$project": {"k": {"$add": ["$k", 0]}, "pad": 1}}, {"$sort": {"k": 1}}],
    "$group": [
        {"$group": {"_id": "$k", "first": {"$first": "$_id"}, "pads": {"$push": "$pad"}, "n": {"$sum": 1}}},
        {"$sort": {"_id": 1}},
    ],
    "$setWindowFields": [
        {"$setWindowFields": {"partitionBy": "$part", "sortBy": {"k": 1}, "output": {
            "sum": {"$sum": "$_id", "window": {"documents": [-2, 1]}}, "rank": {"$rank": {}}}}},
        {"$project": {"sum": 1, "rank": 1}},
    ],
    "$bucketAuto": [
        {"$bucketAuto": {"groupBy": "$k", "buckets": 7, "output": {"n": {"$sum": 1}, "ids": {"$push": "$_id"}}}},
    ],
    "$lookup": [
        {"$match": {"_id": {"$lt": 40}}},
        {"$lookup": {"from": "spilling", "localField": "_id", "foreignField": "k", "as": "joined"}},
        {"$project": {"joined._id": 1, "joined.pad": 1}},
    ],
}


@pytest.fixture
def spilling(database):
    database.spilling.insert_many(
        {"_id": i, "k": i * 7919 % 751, "part": i % 97, "pad": f"{i * 104729 % 999983:06}" * 40} for i in range(COUNT)
    )
    return database.spilling


@pytest.fixture
def limit(client):
    """Sets all limits of memory to this many bytes, and resets them at the end."""
    was = {}

    def set_all(size):
        for name in PARAMETERS:
            was.setdefault(name, client.admin.command("setParameter", 1, **{name: size})["was"])

    yield set_all
    for name, value in was.items():
        client.admin.command("setParameter", 1, **{name: value})


def stages(database, pipeline):
    command = {"aggregate": "spilling", "pipeline": pipeline, "cursor": {}}
    return database.command("explain", command, verbosity="executionStats")["stages"]


@pytest.mark.parametrize("name", PIPELINES)
def test_a_stage_that_spills_says_so_and_stays_right(database, spilling, limit, name):
    pipeline = PIPELINES[name]
    in_memory = list(spilling.aggregate(pipeline))
    assert len(in_memory) > 5
    [stage] = [stage for stage in stages(database, pipeline) if name in stage]
    assert not stage.get("usedDisk") and not stage.get("spills")

    limit(LIMIT_BYTES)
    assert list(spilling.aggregate(pipeline)) == in_memory
    assert list(spilling.aggregate(pipeline, batchSize=3)) == in_memory
    [stage] = [stage for stage in stages(database, pipeline) if name in stage]
    assert stage["usedDisk"] is True
    assert all(stage[figure] > 0 for figure in FIGURES), stage


@pytest.mark.parametrize("name", ["$sort", "$group", "$setWindowFields", "$bucketAuto"])
def test_what_must_not_spill_is_refused(spilling, limit, name):
    limit(LIMIT_BYTES)
    with pytest.raises(OperationFailure) as refused:
        list(spilling.aggregate(PIPELINES[name], allowDiskUse=False))
    assert refused.value.code == 292


WINDOWS = {
    "a sum to here": {"sortBy": {"k": 1, "_id": 1}, "output": {"w": {
        "$sum": "$_id", "window": {"documents": ["unbounded", "current"]}}}},
    "two far ends": {"sortBy": {"_id": 1}, "output": {
        "w": {"$sum": "$k", "window": {"documents": [-600, -500]}}, "v": {"$shift": {"output": "$pad", "by": 700}}}},
    "a range": {"sortBy": {"k": 1}, "output": {"w": {"$avg": "$_id", "window": {"range": [-20, 20]}}}},
    "what cannot be taken back": {"sortBy": {"_id": 1}, "output": {
        "w": {"$max": "$pad", "window": {"documents": [-9, 9]}}}},
    "all of it": {"output": {"w": {"$avg": "$k"}}},
}


@pytest.mark.parametrize("name", WINDOWS)
def test_a_partition_beyond_memory_goes_to_disk(database, spilling, limit, name):
    pipeline = [{"$setWindowFields": WINDOWS[name]}, {"$project": {"w": 1, "v": 1, "pad": 1}}]
    in_memory = list(spilling.aggregate(pipeline))
    assert len(in_memory) == COUNT
    limit(100_000)
    assert list(spilling.aggregate(pipeline)) == in_memory
    assert list(spilling.aggregate(pipeline, batchSize=7)) == in_memory
    [stage] = [stage for stage in stages(database, pipeline) if "$setWindowFields" in stage]
    assert stage["usedDisk"] is True
    assert all(stage[figure] > 0 for figure in FIGURES), stage


def test_a_partition_that_must_not_go_to_disk_is_refused(client, spilling, limit):
    limit(100_000_000)
    client.admin.command("setParameter", 1, internalDocumentSourceSetWindowFieldsMaxMemoryBytes=100_000)
    for window in WINDOWS.values():
        with pytest.raises(OperationFailure) as refused:
            list(spilling.aggregate([{"$setWindowFields": window}], allowDiskUse=False))
        assert refused.value.code == 5643011


def test_what_a_window_holds_must_fit(spilling, limit):
    limit(100_000)
    window = {"sortBy": {"_id": 1}, "output": {"w": {"$push": "$pad", "window": {"documents": [-1000, 0]}}}}
    with pytest.raises(OperationFailure) as refused:
        list(spilling.aggregate([{"$setWindowFields": window}]))
    assert refused.value.code == 5414201


def test_scores_go_to_disk_with_their_documents(spilling, limit):
    spilling.create_index([("pad", "text"), ("word", "text")])
    spilling.update_many({"_id": {"$lt": 400}}, [{"$set": {"word": {"$cond": [
        {"$lt": ["$_id", 200]}, "coffee", "coffee coffee coffee tea"]}}}])
    found = [{"$match": {"$text": {"$search": "coffee tea"}}}]
    read = [{"$set": {"score": {"$meta": "textScore"}}}, {"$project": {"score": 1}}]
    kept_back = [
        [{"$sort": {"k": -1, "_id": 1}}],
        [{"$sort": {"score": {"$meta": "textScore"}, "_id": 1}}],
        [{"$setWindowFields": {"partitionBy": "$part", "sortBy": {"k": 1}, "output": {"n": {"$documentNumber": {}}}}}],
    ]
    expected = {document["_id"]: document["score"] for document in spilling.aggregate(found + read)}
    assert len(expected) == 400 and len(set(expected.values())) == 2
    limit(20_000)
    for stage in kept_back:
        documents = list(spilling.aggregate(found + stage + read))
        assert {document["_id"]: document["score"] for document in documents} == expected, stage
