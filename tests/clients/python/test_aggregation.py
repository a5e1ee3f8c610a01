"""Aggregation: the stages that applications use most."""

import pytest


@pytest.fixture
def orders(database):
    database.orders.insert_many([
        {"_id": 1, "customer": "ann", "lines": [{"sku": "a", "n": 2}, {"sku": "b", "n": 1}], "paid": 10},
        {"_id": 2, "customer": "bob", "lines": [{"sku": "a", "n": 5}], "paid": 20.5},
        {"_id": 3, "customer": "ann", "lines": [], "paid": 30},
    ])
    return database.orders


def test_match_group_sort_project(orders):
    assert list(orders.aggregate([
        {"$match": {"paid": {"$gte": 10}}},
        {"$group": {"_id": "$customer", "total": {"$sum": "$paid"}, "orders": {"$sum": 1}, "mean": {"$avg": "$paid"},
                    "most": {"$max": "$paid"}, "least": {"$min": "$paid"}, "ids": {"$push": "$_id"}}},
        {"$sort": {"total": -1}},
        {"$project": {"_id": 0, "customer": "$_id", "total": 1, "orders": 1, "mean": 1, "most": 1, "least": 1, "ids": 1}},
    ])) == [
        {"total": 40, "orders": 2, "mean": 20.0, "most": 30, "least": 10, "ids": [1, 3], "customer": "ann"},
        {"total": 20.5, "orders": 1, "mean": 20.5, "most": 20.5, "least": 20.5, "ids": [2], "customer": "bob"},
    ]


def test_unwind(orders):
    assert list(orders.aggregate([
        {"$unwind": "$lines"}, {"$group": {"_id": "$lines.sku", "n": {"$sum": "$lines.n"}}}, {"$sort": {"_id": 1}},
    ])) == [{"_id": "a", "n": 7}, {"_id": "b", "n": 1}]
    kept = orders.aggregate([
        {"$unwind": {"path": "$lines", "preserveNullAndEmptyArrays": True, "includeArrayIndex": "at"}},
        {"$sort": {"_id": 1, "at": 1}}, {"$project": {"at": 1}},
    ])
    assert list(kept) == [{"_id": 1, "at": 0}, {"_id": 1, "at": 1}, {"_id": 2, "at": 0}, {"_id": 3, "at": None}]


def test_count_skip_limit(orders):
    assert list(orders.aggregate([{"$match": {"customer": "ann"}}, {"$count": "n"}])) == [{"n": 2}]
    assert list(orders.aggregate([{"$sort": {"_id": 1}}, {"$skip": 1}, {"$limit": 1}, {"$project": {"_id": 1}}])) == [{"_id": 2}]
    assert list(orders.aggregate([{"$match": {"customer": "nobody"}}, {"$count": "n"}])) == []


def test_computed_fields(orders):
    computed = orders.aggregate([
        {"$match": {"_id": 1}},
        {"$project": {"sum": {"$add": ["$paid", 1]}, "name": {"$concat": ["$customer", "!"]},
                      "big": {"$cond": [{"$gt": ["$paid", 5]}, "yes", "no"]}, "lines": {"$size": "$lines"},
                      "first": {"$arrayElemAt": ["$lines.sku", 0]}, "none": {"$ifNull": ["$missing", "none"]}}},
    ])
    assert list(computed) == [{"_id": 1, "sum": 11, "name": "ann!", "big": "yes", "lines": 2, "first": "a", "none": "none"}]


def test_a_pipeline_of_ten_stages(orders, database):
    database.customers.insert_many([{"_id": "ann", "town": "Kyoto"}, {"_id": "bob", "town": "Osaka"}])
    rows = orders.aggregate([
        {"$match": {"paid": {"$gt": 5}}},
        {"$lookup": {"from": "customers", "localField": "customer", "foreignField": "_id", "as": "who"}},
        {"$unwind": "$who"},
        {"$addFields": {"pieces": {"$sum": "$lines.n"}}},
        {"$group": {"_id": "$who.town", "paid": {"$sum": "$paid"}, "pieces": {"$push": "$pieces"}, "n": {"$count": {}}}},
        {"$set": {"most": {"$max": "$pieces"}}},
        {"$project": {"pieces": 0}},
        {"$sort": {"paid": -1}},
        {"$skip": 0},
        {"$limit": 5},
    ], allowDiskUse=True)
    assert list(rows) == [{"_id": "Kyoto", "paid": 40, "n": 2, "most": 3}, {"_id": "Osaka", "paid": 20.5, "n": 1, "most": 5}]
