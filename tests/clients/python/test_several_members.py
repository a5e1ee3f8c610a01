"""A set of three members: write concerns by tags and modes, reads by tags, causal reads and horizons. BUNKO_SEVERAL_PORTS names
the ports of three servers on this machine that are in no set of several yet, or in this one. They accept TLS."""

import os
import time
from pathlib import Path

import pymongo
import pytest
from pymongo.errors import WriteConcernError
from pymongo.read_preferences import Nearest, Secondary
from pymongo.write_concern import WriteConcern

PORTS = [int(port) for port in os.environ.get("BUNKO_SEVERAL_PORTS", "").split()]
CERTIFICATES = Path(os.environ.get("BUNKO_TLS_CERTIFICATES", "."))
TAGS = [{"dc": "east"}, {"dc": "west", "disk": "ssd"}, {"dc": "east"}]
DATABASE = "clients_python_several"

pytestmark = pytest.mark.skipif(not PORTS, reason="BUNKO_SEVERAL_PORTS names no servers")


def connect(host, **options):
    seeds = ",".join(f"{host}:{port}" for port in PORTS)
    return pymongo.MongoClient(f"mongodb://{seeds}/?replicaSet=rs1", serverSelectionTimeoutMS=20_000, **options)


def initiate():
    members = [
        {"_id": id, "host": f"127.0.0.1:{port}", "horizons": {"outside": f"localhost:{port}"}, "tags": TAGS[id]}
        for id, port in enumerate(PORTS)
    ]
    settings = {"getLastErrorModes": {"both": {"dc": 2}, "three": {"dc": 3}}}
    with pymongo.MongoClient(f"mongodb://127.0.0.1:{PORTS[0]}/?directConnection=true") as first:
        if len(first.admin.command("hello").get("hosts", [])) < len(PORTS):
            first.admin.command("replSetInitiate", {"_id": "rs1", "members": members, "settings": settings})


@pytest.fixture(scope="module")
def several():
    initiate()
    with connect("127.0.0.1") as client:
        until = time.monotonic() + 60
        while client.primary is None or len(client.secondaries) < 2:
            assert time.monotonic() < until, client.topology_description
            time.sleep(0.1)
        yield client
        client.drop_database(DATABASE)


@pytest.fixture
def rows(several):
    several.drop_database(DATABASE)
    return several[DATABASE].rows


def test_a_write_waits_for_a_mode(rows):
    for number, w in enumerate(["both", "majority", 3]):
        rows.with_options(write_concern=WriteConcern(w=w, wtimeout=20_000)).insert_one({"_id": number})
    for w, code in (("none", 79), ("three", 100), (4, 100)):
        with pytest.raises(WriteConcernError) as refused:
            rows.with_options(write_concern=WriteConcern(w=w)).insert_one({"_id": w})
        assert refused.value.code == code
        # It is done all the same.
        assert rows.find_one({"_id": w})


def test_a_write_waits_for_tags(several, rows):
    """PyMongo's WriteConcern takes no tags, so they travel in the command."""

    def insert(id, tags):
        return several[DATABASE].command("insert", "rows", documents=[{"_id": id}], writeConcern={"w": tags})

    for number, tags in enumerate(({"dc": 2}, {"dc": 1, "disk": 1})):
        assert insert(number, tags)["n"] == 1
    for number, tags in enumerate(({"disk": 2}, {"colour": 1})):
        reply = insert(10 + number, tags)
        assert (reply["n"], reply["writeConcernError"]["code"]) == (1, 100)
    assert rows.count_documents({}) == 4


def test_a_transaction_waits_for_a_mode(several, rows):
    rows.insert_one({"_id": 0})
    with several.start_session() as session, session.start_transaction(write_concern=WriteConcern(w="both")):
        rows.update_one({"_id": 0}, {"$set": {"n": 1}}, session=session)
    assert rows.find_one() == {"_id": 0, "n": 1}


def test_reads_go_to_members_with_tags(several, rows):
    tagged = TAGS.index({"dc": "west", "disk": "ssd"})
    tagged_rows = rows.with_options(read_preference=Nearest(tag_sets=[{"disk": "ssd"}]))
    # A secondary applies a write a moment after it has it.
    with several.start_session(causal_consistency=True) as session:
        rows.insert_one({"_id": 0}, session=session)
        found = tagged_rows.find(session=session)
        assert list(found) == [{"_id": 0}]
        assert found.address == ("127.0.0.1", PORTS[tagged])


def test_a_causal_session_reads_its_writes_on_secondaries(several, rows):
    on_secondaries = rows.with_options(read_preference=Secondary())
    with several.start_session(causal_consistency=True) as session:
        for number in range(100):
            rows.insert_one({"_id": number}, session=session)
            assert on_secondaries.find_one({"_id": number}, session=session)


@pytest.mark.skipif(not (CERTIFICATES / "ca.pem").exists(), reason="there are no certificates")
def test_each_horizon_sees_the_members_under_its_names(several):
    assert several.nodes == {("127.0.0.1", port) for port in PORTS}
    with connect("localhost", tls=True, tlsCAFile=str(CERTIFICATES / "ca.pem")) as outside:
        assert outside.admin.command("ping")["ok"] == 1
        until = time.monotonic() + 20
        while len(outside.nodes) < len(PORTS):
            assert time.monotonic() < until, outside.topology_description
            time.sleep(0.1)
        assert outside.nodes == {("localhost", port) for port in PORTS}
        assert outside.primary == ("localhost", several.primary[1])
        # A failover under these names.
        before = outside.primary
        outside.admin.command("replSetStepDown", 5, secondaryCatchUpPeriodSecs=5)
        outside[DATABASE].rows.insert_one({"_id": "after"})
        assert outside.primary is not None and outside.primary != before
