"""Search indexes, $search and $searchMeta."""

import pytest
from pymongo.errors import OperationFailure
from pymongo.operations import SearchIndexModel

DOCUMENTS = [
    {"_id": 1, "title": "The quick brown fox", "year": 1999, "kind": "a", "parts": [{"name": "quick one", "n": 1}]},
    {"_id": 2, "title": "A quick, quick rabbit", "year": 2004, "kind": "b", "parts": [{"name": "slow one", "n": 2}]},
    {"_id": 3, "title": "The lazy dog", "year": 2010, "kind": "a", "parts": []},
]
DEFINITION = {
    "mappings": {
        "dynamic": True,
        "fields": {
            "kind": {"type": "token"},
            "title": [{"type": "string"}, {"type": "autocomplete"}],
            "parts": {"type": "embeddedDocuments", "dynamic": True, "storedSource": True},
        },
    },
    "storedSource": {"include": ["title"]},
}


@pytest.fixture
def films(things):
    things.insert_many(DOCUMENTS)
    assert things.create_search_index(SearchIndexModel(definition=DEFINITION, name="default")) == "default"
    return things


def ids(collection, search, *stages):
    return [document["_id"] for document in collection.aggregate([{"$search": search}, *stages])]


def refused(collection, search, code=8):
    with pytest.raises(OperationFailure) as failure:
        list(collection.aggregate([{"$search": search}]))
    assert failure.value.code == code, failure.value
    return failure.value


def test_indexes_are_made_listed_updated_and_dropped(films):
    (listed,) = films.list_search_indexes()
    assert (listed["name"], listed["type"], listed["status"], listed["queryable"]) == ("default", "search", "READY", True)
    assert listed["latestDefinition"] == DEFINITION and len(listed["id"]) == 24
    with pytest.raises(OperationFailure) as failure:
        films.create_search_index(SearchIndexModel(definition=DEFINITION, name="default"))
    assert failure.value.code == 68
    vector = {"fields": [{"type": "vector", "path": "v", "numDimensions": 3, "similarity": "cosine"}]}
    films.create_search_index(SearchIndexModel(definition=vector, name="v", type="vectorSearch"))
    films.update_search_index("default", {"mappings": {"dynamic": False}})
    assert [index["name"] for index in films.list_search_indexes()] == ["default", "v"]
    assert ids(films, {"text": {"query": "quick", "path": "title"}}) == []
    films.drop_search_index("v")
    assert [index["name"] for index in films.list_search_indexes()] == ["default"]
    films.rename("others")
    assert [index["name"] for index in films.database.others.list_search_indexes()] == ["default"]
    assert list(films.list_search_indexes()) == []


def test_texts_are_found_and_scored(films):
    assert ids(films, {"text": {"query": "QUICK", "path": "title"}}) == [2, 1]
    assert ids(films, {"text": {"query": "quick fox", "path": "title", "matchCriteria": "all"}}) == [1]
    assert ids(films, {"text": {"query": "quik", "path": "title", "fuzzy": {"maxEdits": 1}}}) == [2, 1]
    assert ids(films, {"phrase": {"query": "brown fox", "path": "title"}}) == [1]
    assert ids(films, {"queryString": {"defaultPath": "title", "query": "quick AND NOT fox"}}) == [2]
    assert ids(films, {"autocomplete": {"query": "rab", "path": "title"}}) == [2]
    assert ids(films, {"equals": {"path": "kind", "value": "a"}}) == [1, 3]
    assert ids(films, {"range": {"path": "year", "gte": 2004}}) == [2, 3]
    assert ids(films, {"near": {"path": "year", "origin": 2010, "pivot": 2}}) == [3, 2, 1]
    compound = {"must": [{"text": {"query": "the", "path": "title"}}], "mustNot": {"exists": {"path": "parts.n"}}}
    assert ids(films, {"compound": compound}) == [3, 1]
    inner = {"text": {"query": "quick", "path": "parts.name"}}
    assert ids(films, {"embeddedDocument": {"path": "parts", "operator": inner}}) == [1]


def test_what_is_written_is_found_at_once(films):
    films.insert_one({"_id": 4, "title": "Another fox"})
    films.delete_one({"_id": 1})
    assert ids(films, {"text": {"query": "fox", "path": "title"}}) == [4]


def test_metadata_of_documents(films):
    stages = [
        {"$search": {"text": {"query": "quick", "path": "title"}, "highlight": {"path": "title"}, "scoreDetails": True}},
        {"$project": {"score": {"$meta": "searchScore"}, "hits": {"$meta": "searchHighlights"},
                      "details": {"$meta": "searchScoreDetails"}, "token": {"$meta": "searchSequenceToken"}}},
    ]
    first, second = films.aggregate(stages)
    assert first["score"] > second["score"] > 0
    assert [piece["value"] for piece in first["hits"][0]["texts"] if piece["type"] == "hit"] == ["quick", "quick"]
    assert first["details"]["value"] == pytest.approx(first["score"])
    after = {"text": {"query": "quick", "path": "title"}, "searchAfter": first["token"]}
    assert ids(films, after) == [1]
    sorted_by_year = {"exists": {"path": "year"}, "sort": {"year": -1}}
    assert ids(films, sorted_by_year) == [3, 2, 1]
    grouped = films.aggregate([stages[0], {"$sort": {"_id": 1}}, {"$project": {"score": {"$meta": "searchScore"}}}])
    assert all(document["score"] > 0 for document in grouped)


def test_facets_and_counts(films):
    facets = {"kinds": {"type": "string", "path": "kind"},
              "years": {"type": "number", "path": "year", "boundaries": [1990, 2000], "default": "later"}}
    (told,) = films.aggregate([{"$searchMeta": {"facet": {"facets": facets}, "count": {"type": "total"}}}])
    assert told["count"] == {"total": 3}
    assert told["facet"]["kinds"]["buckets"] == [{"_id": "a", "count": 2}, {"_id": "b", "count": 1}]
    assert told["facet"]["years"]["buckets"] == [{"_id": 1990, "count": 1}, {"_id": "later", "count": 2}]


def test_metadata_of_a_search_goes_with_its_documents(films):
    found = films.aggregate([{"$search": {"facet": {
        "operator": {"text": {"query": "quick", "path": "title"}},
        "facets": {"kinds": {"type": "string", "path": "kind"}}}, "count": {"type": "total"}}},
        {"$facet": {"documents": [{"$project": {"_id": 1}}],
                    "known": [{"$replaceWith": "$$SEARCH_META"}, {"$limit": 1}],
                    "count": [{"$project": {"_id": 0, "n": "$$SEARCH_META.count.total"}}, {"$limit": 1}]}}])
    (both,) = found
    assert len(both["documents"]) == 2 and both["count"] == [{"n": 2}]
    assert both["known"][0]["facet"]["kinds"]["buckets"] == [{"_id": "a", "count": 1}, {"_id": "b", "count": 1}]


def test_what_is_shown(films):
    stored = {"text": {"query": "dog", "path": "title"}, "returnStoredSource": True}
    assert list(films.aggregate([{"$search": stored}])) == [{"_id": 3, "title": "The lazy dog"}]


def test_other_pipelines_search(films):
    films.database.create_collection("seen", viewOn=films.name, pipeline=[{"$project": {"title": 1}}])
    assert list(films.database.seen.aggregate([{"$search": {"text": {"query": "dog", "path": "title"}}}])) == [
        {"_id": 3, "title": "The lazy dog"}]
    search = [{"$search": {"text": {"query": "dog", "path": "title"}}}, {"$project": {"_id": 1}}]
    assert list(films.aggregate([{"$limit": 1}, {"$lookup": {"from": films.name, "pipeline": search, "as": "found"}},
                                 {"$project": {"found": 1}}])) == [{"_id": 1, "found": [{"_id": 3}]}]


def test_refusals(films):
    assert list(films.aggregate([{"$search": {"index": "none", "text": {"query": "a", "path": "b"}}}])) == []
    refused(films, {"text": {"query": "a"}})
    refused(films, {"text": {"query": "a", "path": "b"}, "more": 1})
    refused(films, {"compound": {}})
    refused(films, {"autocomplete": {"query": "a", "path": "year"}})
    refused(films, {"wildcard": {"query": "a*", "path": "title"}})
    refused(films, {"text": {"query": "a", "path": "b"}, "searchAfter": "nothing"})
    refused(films, {"text": {"query": "a", "path": "b", "synonyms": "s"}}, 115)
    deep = {"text": {"query": "a", "path": "title"}}
    for _ in range(40):
        deep = {"compound": {"must": [deep]}}
    assert ids(films, deep) == [2]
