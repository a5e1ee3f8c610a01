"""Change streams, against the replica set of one member that BUNKO_SET_URI names."""

import random
import time

import pytest
from pymongo.errors import OperationFailure


@pytest.fixture
def things(set_client):
    set_client.drop_database("clients_streams")
    database = set_client.clients_streams
    yield database.create_collection("things", changeStreamPreAndPostImages={"enabled": True})
    set_client.drop_database("clients_streams")


def test_the_events_of_a_transaction_name_it(set_client, things):
    with things.watch(max_await_time_ms=500) as stream:
        with set_client.start_session() as session, session.start_transaction():
            own = session.session_id["id"]
            things.insert_one({"_id": 1}, session=session)
            things.update_one({"_id": 1}, {"$set": {"a": 1}}, session=session)
            assert stream.try_next() is None, "nothing is told before the commit"
        events = [stream.next()]
        if events[0]["fullDocument"] == {"_id": 1}:
            # Both statements have events, unless the commit folds them into one.
            events.append(stream.next())
        assert all(event["lsid"]["id"] == own for event in events)
        assert len({event["txnNumber"] for event in events}) == 1
        things.insert_one({"_id": 2})
        assert "txnNumber" not in stream.next()


def test_a_large_event_comes_in_fragments(things):
    half = "x" * (9 << 20)
    things.insert_one({"_id": 1, "text": half})
    options = {"full_document": "whenAvailable", "full_document_before_change": "whenAvailable"}
    split = [{"$changeStreamSplitLargeEvent": {}}]
    with things.watch(split, **options) as stream:
        things.replace_one({"_id": 1}, {"_id": 1, "text": half.replace("x", "y")})
        things.insert_one({"_id": 2})
        first = stream.next()
        assert first["splitEvent"] == {"fragment": 1, "of": 2} and "fullDocument" in first
        with things.watch(split, resume_after=first["_id"], **options) as resumed:
            second = resumed.next()
            assert second["splitEvent"] == {"fragment": 2, "of": 2}
            assert len(second["fullDocumentBeforeChange"]["text"]) == len(half)
            assert resumed.next()["documentKey"] == {"_id": 2}
        assert stream.next() == second
        with pytest.raises(OperationFailure) as refused:
            things.watch([], resume_after=first["_id"], **options)
        assert refused.value.code == 280
    with pytest.raises(OperationFailure) as misplaced:
        things.watch([*split, {"$match": {}}])
    assert misplaced.value.code == 7182802


def test_documents_before_a_change_are_shown_for_so_long(set_client, things):
    def expire_after(seconds):
        images = {"preAndPostImages": {"expireAfterSeconds": seconds}}
        set_client.admin.command("setClusterParameter", {"changeStreamOptions": images})

    def before_change(since):
        with things.watch(start_at_operation_time=since, full_document_before_change="whenAvailable") as stream:
            return stream.next()["fullDocumentBeforeChange"]

    with set_client.start_session(causal_consistency=True) as session:
        things.insert_one({"_id": 1, "a": 1})
        things.delete_one({"_id": 1}, session=session)
        since = session.operation_time
    assert before_change(since) == {"_id": 1, "a": 1}
    try:
        expire_after(1)
        time.sleep(2.2)
        assert before_change(since) is None
    finally:
        expire_after("off")
    assert before_change(since) == {"_id": 1, "a": 1}


def apply(event, copy):
    key = event["documentKey"]["_id"]
    if event["operationType"] == "delete":
        del copy[key]
    elif event["operationType"] == "update":
        copy[key].update(event["updateDescription"]["updatedFields"])
        for removed in event["updateDescription"]["removedFields"]:
            del copy[key][removed]
    else:
        copy[key] = event["fullDocument"]


def test_a_consumer_that_is_resumed_at_random_rebuilds_the_collection(set_client, things):
    chance = random.Random(7)
    copy, token, written = {}, None, 0
    start = set_client.admin.command("ping")["operationTime"]
    for _ in range(20):
        for _ in range(chance.randrange(30)):
            written += 1
            key = chance.randrange(20)
            what = chance.randrange(5)
            if what == 0:
                things.replace_one({"_id": key}, {"b": written}, upsert=True)
            elif what == 1:
                things.delete_one({"_id": key})
            elif what == 2:
                things.update_one({"_id": key}, {"$set": {"a": written}, "$unset": {"b": 1}})
            else:
                with set_client.start_session() as session:
                    session.start_transaction()
                    things.update_one({"_id": key}, {"$set": {"t": written}}, upsert=True, session=session)
                    things.delete_one({"_id": (key + 1) % 20}, session=session)
                    session.commit_transaction() if chance.randrange(3) else session.abort_transaction()
        place = {"resume_after": token} if token else {"start_at_operation_time": start}
        with things.watch(max_await_time_ms=100, **place) as stream:
            # The consumer dies anywhere, even in the middle of a transaction's events.
            for _ in range(chance.randrange(40)):
                event = stream.try_next()
                if event is None:
                    break
                apply(event, copy)
                token = event["_id"]
    place = {"resume_after": token} if token else {"start_at_operation_time": start}
    with things.watch(max_await_time_ms=100, **place) as stream:
        while (event := stream.try_next()) is not None:
            apply(event, copy)
    found = {document["_id"]: document for document in things.find()}
    assert copy == found and written > 100


def test_views_and_time_series_are_told_to_those_who_ask_for_all_events(set_client, things):
    database = things.database
    with database.watch(show_expanded_events=True) as stream, database.watch() as usual:
        database.create_collection("shown", viewOn="things", pipeline=[])
        database.command("collMod", "shown", viewOn="others", pipeline=[])
        database.drop_collection("shown")
        database.create_collection("series", timeseries={"timeField": "at"})
        things.insert_one({"_id": 1})
        created, modified, dropped, series = (stream.next() for _ in range(4))
        assert created["operationType"] == "create" and created["nsType"] == "view"
        assert created["operationDescription"] == {"viewOn": "things", "pipeline": []}
        assert modified["operationType"] == "modify" and modified["operationDescription"]["viewOn"] == "others"
        assert dropped["operationType"] == "drop"
        assert all(event["ns"] == {"db": "clients_streams", "coll": "shown"} for event in (created, modified, dropped))
        assert not any("collectionUUID" in event for event in (created, modified, dropped, series))
        assert series["nsType"] == "timeseries" and series["ns"]["coll"] == "series"
        assert usual.next()["operationType"] == "insert"
        with database.watch(show_expanded_events=True, resume_after=created["_id"]) as resumed:
            assert resumed.next() == modified


def described(things, before, update, **options):
    """The event of an update of a document that was replaced before."""
    things.replace_one({"_id": 1}, {"_id": 1, **before}, upsert=True)
    with things.watch(show_expanded_events=True) as stream:
        things.update_one({"_id": 1}, update, **options)
        return stream.next()["updateDescription"]


def test_an_update_is_told_by_the_paths_that_its_operators_name(things):
    text = "what is longer than the rest of it"
    told = described(things, {"a": {"text": text, "n": 1}}, {"$set": {"a": {"text": text, "n": 2}}})
    assert told["updatedFields"] == {"a": {"text": text, "n": 2}}, "the operator names the whole"
    told = described(things, {"a": {"n": 1, "m": 1, "k": 1}}, {"$inc": {"a.n": 1}, "$set": {"a.m": 1}, "$unset": {"a.k": 1}})
    assert told["updatedFields"] == {"a.n": 2} and told["removedFields"] == ["a.k"]
    told = described(things, {"a": [1, {"b": 1}]}, {"$push": {"a": 5}})
    assert told["updatedFields"] == {"a.2": 5}
    told = described(things, {"a": [1, text, 3]}, {"$pop": {"a": 1}})
    assert told["updatedFields"] == {"a": [1, text]} and told["truncatedArrays"] == []
    told = described(things, {"a": [1, text, 3]}, [{"$set": {"a": {"$slice": ["$a", 2]}}}])
    assert told["updatedFields"] == {} and told["truncatedArrays"] == [{"field": "a", "newSize": 2}]
    told = described(things, {"a": {"0": {"b": 1}}, "c": [{"b": 1}]}, {"$set": {"a.0.b": 2, "c.0.b": 2}})
    assert told["updatedFields"] == {"a.0.b": 2, "c.0.b": 2}
    assert told["disambiguatedPaths"] == {"a.0.b": ["a", "0", "b"]}, "an array's position needs no word"
    told = described(things, {"c": [{"b": 1}, {"b": 2}]}, {"$inc": {"c.$[e].b": 5}}, array_filters=[{"e.b": 2}])
    assert told["updatedFields"] == {"c.1.b": 7}


def put_at(value, parts, new):
    for part in parts[:-1]:
        value = value[part]
    if isinstance(value, list):
        value.extend([None] * (parts[-1] + 1 - len(value)))
    value[parts[-1]] = new


def parts_of(path):
    """The parts of a path in which no field's name is a number."""
    return [int(part) if part.isdigit() else part for part in path.split(".")]


def test_documents_are_rebuilt_from_paths(things):
    """A client that follows the events has equal documents, byte for byte, whatever the operators do."""
    chance = random.Random(21)
    things.insert_many([{"_id": key, "a": {"x": 1, "y": [1, {"z": 1}]}, "l": [1, 2]} for key in range(5)])
    copy = {document["_id"]: document for document in things.find()}
    updates = [
        lambda n: {"$set": {"a.x": n}},
        lambda n: {"$set": {"a": {"x": n, "y": [n, {"z": n}]}}},
        lambda n: {"$inc": {"a.y.1.z": 1}, "$push": {"l": n}},
        lambda n: {"$push": {"l": {"$each": [n, n + 1], "$position": 1}}},
        lambda n: {"$addToSet": {"l": {"$each": [n % 7, n % 5]}}},
        lambda n: {"$pull": {"l": {"$lt": n}}},
        lambda n: {"$set": {f"l.{n % 9}": n}},
        lambda n: {"$set": {f"new{n % 6}.deep.er": n}, "$unset": {f"new{(n + 1) % 6}": 1}},
        lambda n: {"$rename": {f"new{n % 6}": f"new{(n + 3) % 6}"}},
        lambda n: {"$unset": {"l.0": 1}},
        lambda n: [{"$set": {"l": {"$slice": ["$l", 3]}, "text": "x" * 100}}],
    ]
    with things.watch(max_await_time_ms=200) as stream:
        for number in range(400):
            things.update_one({"_id": chance.randrange(5)}, chance.choice(updates)(number))
        things.insert_one({"_id": "end"})
        for event in stream:
            if event["documentKey"]["_id"] == "end":
                break
            key, document = event["documentKey"]["_id"], copy[event["documentKey"]["_id"]]
            if event["operationType"] == "replace":
                copy[key] = event["fullDocument"]
                continue
            description = event["updateDescription"]
            for truncated in description["truncatedArrays"]:
                del document[truncated["field"]][truncated["newSize"] :]
            for path in description["removedFields"]:
                *above, last = parts_of(path)
                holder = document
                for part in above:
                    holder = holder[part]
                del holder[last]
            for path, value in description["updatedFields"].items():
                put_at(document, parts_of(path), value)
    found = {document["_id"]: document for document in things.find({"_id": {"$ne": "end"}})}
    assert [list(found[key].items()) for key in found] == [list(copy[key].items()) for key in found]


def test_a_stream_goes_on_behind_any_form_of_a_token(things):
    with things.watch(max_await_time_ms=500) as stream:
        things.insert_many([{"_id": number} for number in range(3)])
        token = stream.next()["_id"]["_data"]
    for form in (token, token.lower(), token[:-2], token + "FF", token + "00"):
        with things.watch(resume_after={"_data": form, "other": 1}) as resumed:
            assert [resumed.next()["documentKey"]["_id"] for _ in range(2)] == [1, 2], form
    with pytest.raises(OperationFailure) as cut:
        with things.watch(start_after={"_data": token[:-4]}) as resumed:
            resumed.try_next()
    assert cut.value.code == 15


def test_a_token_of_another_collection_fails_when_the_next_event_comes(set_client, things):
    other = set_client.clients_streams.create_collection("other")
    with other.watch(max_await_time_ms=500) as stream:
        other.insert_one({"_id": 1})
        token = stream.next()["_id"]
    with things.watch(resume_after=token, max_await_time_ms=100) as resumed:
        assert resumed.try_next() is None
        things.insert_one({"_id": 1})
        with pytest.raises(OperationFailure) as unknown:
            resumed.try_next()
        assert unknown.value.code == 280


def test_a_stream_begins_before_the_set_did(things):
    with things.watch() as stream:
        mark = stream.resume_token["_data"]
    things.insert_one({"_id": 1})
    early = {"_data": mark[:2] + "00000001" + mark[10:]}
    with things.watch(resume_after=early) as resumed:
        assert resumed.next()["operationType"]
