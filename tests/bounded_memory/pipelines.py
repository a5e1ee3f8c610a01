"""Pipelines over a collection that is larger than the server's memory: sorted, grouped by a unique key, joined to itself.

Each result is compared with what follows from how the collection was made. Then the server is killed while files of a sort are
open, and nothing may be left of them.
"""

import argparse
import os
import pathlib
import random
import signal
import string
import subprocess
import sys
import threading
import time

import pymongo
from bson.int64 import Int64

PAD_BYTES = 930
SEEDS = 50
# Keys are a permutation of the ids: the factor and the modulus have no common divisor.
FACTOR = 2654435761


class Server:
    """A server inside the control group."""

    def __init__(self, arguments):
        self.arguments = arguments
        self.log = pathlib.Path(arguments.work, "server.log")

    def start(self):
        a = self.arguments
        serve = [a.binary, "serve", "--port", "0", "--dbpath", f"{a.work}/data", "--log-format", "json", "--cache-size-gb",
                 a.cache_gb]
        into_group = ["bash", "-c", 'echo $$ >"$1" && shift && exec "$@"', "bounded", f"{a.group}/cgroup.procs"]
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(into_group + serve, stdout=log, stderr=subprocess.STDOUT)
        while True:
            found = [word for word in self.log.read_text().split('"') if word.startswith("mongodb://127.")]
            if found:
                break
            if self.process.poll() is not None:
                sys.exit(f"FAILED bounded_memory: the server did not start:\n{self.log.read_text()}")
            time.sleep(0.1)
        return pymongo.MongoClient(f"{found[0]}?directConnection=true")

    def scratch_files(self):
        """How many files of stages are open. They have no names."""
        descriptors = pathlib.Path(f"/proc/{self.process.pid}/fd").iterdir()
        return sum("/scratch/" in os.readlink(descriptor) for descriptor in descriptors)

    def scratch_names(self):
        return os.listdir(f"{self.arguments.work}/data/scratch")


def timed(what, count, run):
    begun = time.monotonic()
    found = run()
    took = time.monotonic() - begun
    print(f"bounded_memory: {what}: {took:.1f} s, {took / count * 1e6:.2f} us a document", flush=True)
    return found


def expect(what, found, expected):
    if found != expected:
        sys.exit(f"FAILED bounded_memory: {what}: found {found}, expected {expected}")


def make(database, count):
    """Most of the work is the server's: a few documents are multiplied."""
    random.seed(7)
    database.seeds.insert_many(
        [{"_id": i, "pad": "".join(random.choices(string.printable, k=PAD_BYTES))} for i in range(SEEDS)])
    each = count // SEEDS
    database.seeds.aggregate([
        {"$set": {"r": {"$range": [0, each]}}},
        {"$unwind": "$r"},
        {"$project": {"_id": {"$add": [{"$multiply": ["$_id", each]}, "$r"]}, "pad": 1}},
        {"$set": {"k": {"$toInt": {"$mod": [{"$multiply": ["$_id", Int64(FACTOR)]}, Int64(count)]}}}},
        {"$out": "big"},
    ])
    expect("documents made", database.big.estimated_document_count(), count)


def run_pipelines(big, count):
    def at(k):
        return next(i for i in [k * pow(FACTOR, -1, count) % count])

    last = timed("$sort of all", count, lambda: list(big.aggregate(
        [{"$sort": {"k": 1}}, {"$skip": count - 2}, {"$project": {"k": 1}}])))
    expect("the end of a $sort", last, [{"_id": at(k), "k": k} for k in (count - 2, count - 1)])
    in_order = timed("$sort, each document beside the next", count, lambda: list(big.aggregate([
        {"$sort": {"k": -1}},
        {"$group": {"_id": None, "n": {"$sum": 1}, "first": {"$first": "$k"}, "last": {"$last": "$_id"},
                    "bytes": {"$sum": {"$strLenBytes": "$pad"}}}},
    ])))
    expect("all of a $sort", in_order,
           [{"_id": None, "n": count, "first": count - 1, "last": at(0), "bytes": count * PAD_BYTES}])
    groups = timed("$group by a unique key", count, lambda: list(big.aggregate([
        {"$group": {"_id": "$k", "pad": {"$first": "$pad"}, "n": {"$sum": 1}}},
        {"$group": {"_id": "$n", "groups": {"$sum": 1}, "keys": {"$sum": "$_id"},
                    "bytes": {"$sum": {"$strLenBytes": "$pad"}}}},
    ])))
    expect("a $group", groups, [
        {"_id": 1, "groups": count, "keys": count * (count - 1) // 2, "bytes": count * PAD_BYTES}])
    part = count // 50
    joined = [{"_id": 1, "n": part, "ids": sum(at(k) for k in range(part))}]
    join = [
        {"$match": {"_id": {"$lt": part}}},
        {"$project": {"_id": 1}},
        {"$lookup": {"from": "big", "localField": "_id", "foreignField": "k", "as": "x"}},
        {"$group": {"_id": {"$size": "$x"}, "n": {"$sum": 1}, "ids": {"$sum": {"$first": "$x._id"}}}},
    ]
    timed("createIndexes", count, lambda: big.create_index("k"))
    expect("a $lookup by an index", timed("$lookup by an index", part, lambda: list(big.aggregate(join))), joined)
    join[2]["$lookup"] |= {"localField": "_id", "foreignField": "_id"}
    joined[0]["ids"] = part * (part - 1) // 2
    expect("a $lookup by _id", timed("$lookup by _id", part, lambda: list(big.aggregate(join))), joined)


def kill_a_sort(server, client, count):
    big = client.test.big

    def ends_with_the_server():
        try:
            list(big.aggregate([{"$sort": {"pad": 1, "k": 1}}, {"$skip": count - 1}]))
        except pymongo.errors.PyMongoError:
            pass

    thread = threading.Thread(target=ends_with_the_server)
    thread.start()
    while not server.scratch_files():
        if not thread.is_alive():
            sys.exit("FAILED bounded_memory: the sort that was to be killed did not go on disk")
        time.sleep(0.01)
    server.process.send_signal(signal.SIGKILL)
    server.process.wait()
    thread.join()
    client = server.start()
    expect("files left by a killed sort", server.scratch_names(), [])
    expect("documents after the kill", client.test.big.count_documents({}), count)


def main():
    parser = argparse.ArgumentParser()
    for name in ("binary", "group", "work", "cache_gb"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--documents", type=int, required=True)
    parser.add_argument("--stage_memory", type=int, help="bytes that a stage may hold, where not MongoDB's 100 MB")
    arguments = parser.parse_args()
    count = arguments.documents // SEEDS * SEEDS
    server = Server(arguments)
    client = server.start()
    try:
        if arguments.stage_memory:
            for name in ("internalQueryMaxBlockingSortMemoryUsageBytes", "internalDocumentSourceGroupMaxMemoryBytes"):
                client.admin.command("setParameter", 1, **{name: arguments.stage_memory})
        timed(f"{count:,} documents of about {PAD_BYTES + 35} bytes made", count, lambda: make(client.test, count))
        run_pipelines(client.test.big, count)
        expect("files of stages that have ended", server.scratch_files(), 0)
        kill_a_sort(server, client, count)
    finally:
        server.process.terminate()
        server.process.wait()


main()
