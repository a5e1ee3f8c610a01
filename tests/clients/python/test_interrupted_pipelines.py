"""Pipelines on their way are ended by killOp and maxTimeMS, with the threads that help them and the files that they have."""

import os
import threading
import time

import pymongo
import pytest
from pymongo.errors import NetworkTimeout, OperationFailure

# Greatest time that a test waits for the end. The server needs far less: the rest is for a machine with other work.
END_S = 5.0
MAX_TIME_MS_EXPIRED = 50
INTERRUPTED = 11601
COUNT = 100_000
# From some ten thousand documents on, two threads scan a collection. This many match at once, so that both threads soon
# work.
QUICK = 20_000
# The other documents have a list whose elements have none of these fields, so that each takes as long as possible: all
# of them take many times LIMIT_S. The filter is short, because reading a long one takes a while too.
LIST = [{"x": number} for number in range(8)]
SLOW = {"$or": [{"a": 1}, *({f"list.none{number}": number} for number in range(1_000))]}
# Time enough for two threads to start, and far too little for them to finish.
LIMIT_S = 6.0
WINDOW = [
    {"$setWindowFields": {"sortBy": {"v": 1}, "output": {"w": {
        "$max": "$v", "window": {"documents": [-200, 200]}}}}},
    {"$group": {"_id": None, "n": {"$sum": "$w"}}},
]


@pytest.fixture(scope="module")
def many(client):
    client.drop_database("clients_python_many")
    many = client.clients_python_many.many
    for first in range(0, COUNT, 10_000):
        many.insert_many(
            {"_id": i, "v": i * 7919 % 1000, "pad": "x" * 200, **({"a": 1} if i < QUICK else {"list": LIST})}
            for i in range(first, first + 10_000))
    yield many
    client.drop_database("clients_python_many")


@pytest.fixture
def little_memory(client):
    name = "internalDocumentSourceSetWindowFieldsMaxMemoryBytes"
    was = client.admin.command("setParameter", 1, **{name: 1_000_000})["was"]
    yield
    client.admin.command("setParameter", 1, **{name: was})


@pytest.fixture
def process(client):
    """The server's directory under /proc, where it runs beside this test."""
    directory = f"/proc/{client.admin.command('serverStatus')['pid']}"
    if not os.access(f"{directory}/fd", os.R_OK):
        pytest.skip("the server runs elsewhere")
    return directory


def helpers(process):
    """How many threads help with scans."""
    names = []
    for task in os.listdir(f"{process}/task"):
        try:
            with open(f"{process}/task/{task}/comm") as comm:
                names.append(comm.read().strip())
        except FileNotFoundError:
            pass
    return names.count("scan-helper")


def scratch_files(process):
    count = 0
    for descriptor in os.listdir(f"{process}/fd"):
        try:
            count += "/scratch/" in os.readlink(f"{process}/fd/{descriptor}")
        except FileNotFoundError:
            pass
    return count


def soon(condition, seconds):
    """Whether a condition holds within this many seconds."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.002)
    return True


class Running:
    """A pipeline on a thread of its own."""

    def __init__(self, collection, pipeline, **options):
        self.code = self.ended = None
        self.collection, self.pipeline, self.options = collection, pipeline, options
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        try:
            list(self.collection.aggregate(self.pipeline, comment="interrupted", **self.options))
        except OperationFailure as failure:
            self.code = failure.code
        self.ended = time.monotonic()

    def operation(self, client):
        running = client.admin.aggregate([{"$currentOp": {}}, {"$match": {"command.comment": "interrupted"}}])
        return next((operation["opid"] for operation in running), None)

    def end(self):
        """When it ended, and with which code."""
        self.thread.join(60)
        assert not self.thread.is_alive()
        return self.ended, self.code


def check_killed(client, running, leftovers):
    operation = running.operation(client)
    assert operation is not None, "it is over too early"
    killed = time.monotonic()
    client.admin.command("killOp", 1, op=operation)
    ended, code = running.end()
    assert code == INTERRUPTED
    assert ended - killed < END_S, f"{(ended - killed) * 1000:.0f} ms"
    assert soon(lambda: not leftovers(), END_S), "something of it is left"
    assert running.operation(client) is None


@pytest.mark.parametrize("behind", [[{"$count": "n"}], [{"$group": {"_id": "$v"}}], [{"$sort": {"v": 1}}]])
def test_a_scan_by_two_threads_is_killed(client, many, process, behind):
    running = Running(many, [{"$match": SLOW}, *behind])
    assert soon(lambda: helpers(process), 30), "nobody helps"
    check_killed(client, running, lambda: helpers(process))


def test_a_scan_by_two_threads_ends_with_its_time(client, many, process):
    began = time.monotonic()
    running = Running(many, [{"$match": SLOW}, {"$count": "n"}], maxTimeMS=int(LIMIT_S * 1000))
    assert soon(lambda: helpers(process), LIMIT_S), "nobody helps"
    ended, code = running.end()
    assert code == MAX_TIME_MS_EXPIRED
    assert ended - began < LIMIT_S + END_S
    assert soon(lambda: not helpers(process), END_S), "a helper is left"


def test_a_scan_by_two_threads_ends_with_its_client(client, many, process):
    helped = []
    watching = threading.Thread(target=lambda: helped.append(soon(lambda: helpers(process), LIMIT_S)))
    watching.start()
    with pymongo.MongoClient(os.environ["BUNKO_URI"], socketTimeoutMS=int(LIMIT_S * 1000), retryReads=False) as own:
        with pytest.raises(NetworkTimeout):
            list(own.clients_python_many.many.aggregate([{"$match": SLOW}, {"$count": "n"}]))
        watching.join()
        assert helped == [True], "nobody helps"
        assert soon(lambda: not helpers(process), END_S), "a helper is left"


def test_a_partition_on_disk_is_killed(client, many, process, little_memory):
    running = Running(many, WINDOW)
    assert soon(lambda: scratch_files(process), 30), "nothing is on disk"
    check_killed(client, running, lambda: scratch_files(process))


def test_a_partition_on_disk_ends_with_its_time(many, process, little_memory):
    limit_s = 0.4
    began = time.monotonic()
    ended, code = Running(many, WINDOW, maxTimeMS=int(limit_s * 1000)).end()
    assert code == MAX_TIME_MS_EXPIRED
    assert ended - began < limit_s + END_S
    assert soon(lambda: not scratch_files(process), END_S), "files are left"


def test_a_cursor_that_is_closed_leaves_no_files(many, process, little_memory):
    cursor = many.aggregate(WINDOW[:1], batchSize=10)
    assert next(cursor)["w"] is not None
    assert scratch_files(process) > 0
    cursor.close()
    assert soon(lambda: not scratch_files(process), END_S), "files are left"
