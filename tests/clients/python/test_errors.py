"""Errors: the codes and names that applications branch on."""

import pytest
from pymongo.errors import CollectionInvalid, DocumentTooLarge, OperationFailure, WriteError


def failure(act, *arguments, **options):
    with pytest.raises(OperationFailure) as caught:
        act(*arguments, **options)
    return caught.value.code, (caught.value.details or {}).get("codeName")


def test_namespace_not_found(client, database):
    database.present.insert_one({})
    assert failure(database.command, "listIndexes", "missing") == (26, "NamespaceNotFound")
    assert failure(client.admin.command, "renameCollection", "clients_python.missing", to="clients_python.x") == (
        26, "NamespaceNotFound")


def test_namespace_exists(client, database):
    database.create_collection("present")
    # Creating the collection again with the same options is no error. Other options under that name are.
    assert database.command("create", "present") == {"ok": 1.0}
    assert failure(database.command, "create", "present", storageEngine={"mmap": {}}) == (48, "NamespaceExists")
    with pytest.raises(CollectionInvalid):
        database.create_collection("present")
    database.create_collection("other")
    assert failure(client.admin.command, "renameCollection", "clients_python.present", to="clients_python.other") == (
        48, "NamespaceExists")
    client.admin.command("renameCollection", "clients_python.present", to="clients_python.other", dropTarget=True)
    assert database.list_collection_names() == ["other"]


def test_unknown_command(database):
    assert failure(database.command, "noSuchCommand") == (59, "CommandNotFound")


def test_unknown_field(database):
    code, name = failure(database.command, "find", "things", bogus=1)
    assert (code, name) in [(40415, "IDLUnknownField"), (40415, "Location40415")]


def test_wrong_type_names_the_field(database):
    with pytest.raises(OperationFailure, match="filter") as caught:
        database.command("find", "things", filter=5)
    assert (caught.value.code, caught.value.details["codeName"]) == (14, "TypeMismatch")


@pytest.mark.parametrize("filter, code", [({"$bad": 1}, 2), ({"a": {"$foo": 1}}, 2), ({"a": {"$in": 1}}, 2)], ids=str)
def test_bad_filters(things, filter, code):
    assert failure(things.find_one, filter)[0] == code


@pytest.mark.parametrize("document, update, code", [
    ({"a": "text"}, {"$inc": {"a": 1}}, 14),
    ({"a": 1}, {"$push": {"a": 1}}, 2),
    ({"a": 1}, {"$bogus": {"a": 1}}, 9),
    ({"a": 1}, {"$set": {"a": 1}, "$inc": {"a": 1}}, 40),
    ({"a": 1}, {"$set": {"a.b": 1}}, 28),
    ({"a": 1}, {"$set": {"_id": 2}}, 66),
], ids=str)
def test_bad_updates(things, document, update, code):
    things.insert_one({"_id": 1, **document})
    with pytest.raises(WriteError) as caught:
        things.update_one({"_id": 1}, update)
    assert caught.value.code == code
    assert things.find_one() == {"_id": 1, **document}


def test_document_too_large(things):
    # The server has to refuse a document a little above the limit, since commands may be 16 KiB larger than documents.
    with pytest.raises(WriteError, match="object to insert too large") as caught:
        things.insert_one({"pad": "x" * (16 * 1024 * 1024)})
    assert caught.value.code == 10334
    with pytest.raises(DocumentTooLarge):
        things.insert_one({"pad": "x" * (16 * 1024 * 1024 + 32 * 1024)})
    things.insert_one({"pad": "x" * (16 * 1024 * 1024 - 100)})
    assert len(things.find_one()["pad"]) == 16 * 1024 * 1024 - 100
