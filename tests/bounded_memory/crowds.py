"""Crowds of clients, each of which wants much memory: every shape of request below, from 200 clients at once, against a server
in a control group of 1 GiB.

The server must live, and a bystander who asks for one document by its _id, and sorts a few, must be answered meanwhile. A table
says what became of the crowd: how many requests were answered and how many refused, by code, and how much memory the server took.

A new shape is one function and one line in SHAPES. It makes what each client sends; READS and UNREAD say whether the clients
read their replies.
"""

import argparse
import collections
import multiprocessing
import os
import pathlib
import socket
import struct
import subprocess
import sys
import threading
import time
import zlib

import bson
import pymongo
from bson.raw_bson import RawBSONDocument

PROCESSES = 4
# How long a bystander may wait, in seconds. The figures show how long it did wait, and no test may depend on how busy a
# machine is.
BYSTANDER_PATIENCE = 60
# How long the work that a crowd left behind may go on, in seconds.
AFTERMATH = 60
OP_MSG, OP_COMPRESSED, OP_QUERY, ZLIB = 2013, 2012, 2004, 2
EXHAUST_ALLOWED = 1 << 16


def frame(op_code, content):
    return struct.pack("<iiii", 16 + len(content), 7, 0, op_code) + content


def message(body, sequence=None, flags=0):
    content = struct.pack("<I", flags) + b"\0" + bson.encode(body)
    if sequence:
        name, documents = sequence
        documents = b"".join(documents)
        content += b"\1" + struct.pack("<i", 5 + len(name) + len(documents)) + name.encode() + b"\0" + documents
    return frame(OP_MSG, content)


def compressed(whole):
    return frame(OP_COMPRESSED, struct.pack("<iiB", OP_MSG, len(whole) - 16, ZLIB) + zlib.compress(whole[16:], 1))


def inserts():
    return message({"insert": "ins", "$db": "t"}, ("documents", [bson.encode({"s": "y" * 1_000_000})] * 45))


IN = {"a": {"$in": range(1_300_000)}}


def many_values():
    return {"a": {"$in": list(IN["a"]["$in"])}}


def finds():
    return message({"find": "e", "filter": many_values(), "$db": "t"})


def ors():
    return message({"find": "e", "filter": {"$or": [{"a": i} for i in range(700_000)]}, "$db": "t"})


def counts():
    return message({"count": "e", "query": many_values(), "$db": "t"})


def deletes():
    return message({"delete": "e", "deletes": [{"q": many_values(), "limit": 0}], "$db": "t"})


def updates():
    return message({"update": "e", "updates": [{"q": many_values(), "u": {"$inc": {"n": 1}}, "multi": True}], "$db": "t"})


def matches():
    return message({"aggregate": "e", "pipeline": [{"$match": many_values()}], "cursor": {}, "$db": "t"})


def scans():
    return message({"find": "c", "batchSize": 100_000, "$db": "t"})


def scans_without_end():
    return message({"find": "c", "batchSize": 100_000, "$db": "t"}, flags=EXHAUST_ALLOWED)


def old_scans():
    return frame(OP_QUERY, struct.pack("<i", 0) + b"t.c\0" + struct.pack("<ii", 0, 100_000) + bson.encode({}))


def long_documents():
    return message({"find": "long", "limit": 1, "$db": "t"})


def sorts():
    return message({"find": "c", "sort": {"s": -1}, "batchSize": 100_000, "$db": "t"})


def groups():
    pipeline = [{"$group": {"_id": {"$mod": ["$_id", 3]}, "all": {"$push": "$$ROOT"}}}, {"$project": {"n": {"$size": "$all"}}}]
    return message({"aggregate": "c", "pipeline": pipeline, "cursor": {}, "$db": "t"})


def builds(client):
    return message({"createIndexes": "c", "indexes": [{"key": {"s": 1, f"x{client % 60}": 1}, "name": f"x{client % 60}"}], "$db": "t"})


def wildcards():
    fields = {f"f{i}": {f"g{j}": "v" * 20 for j in range(40)} for i in range(6_000)}
    return message({"insert": "wild", "documents": [fields], "$db": "t"})


def texts():
    words = " ".join(f"word{i}" for i in range(400_000))
    return message({"insert": "words", "documents": [{"text": words}], "$db": "t"})


def scripts():
    hoard = "var hoard = []; for (var i = 0; i < 70; i++) hoard.push('x'.repeat(1000000) + i); return hoard.length > 0"
    return message({"find": "e", "filter": {"$where": hoard}, "$db": "t"})


def announcements():
    """The beginning of a message that never comes to its end."""
    return inserts()[:200_000]


READS, UNREAD = "reads", "does not read"
SHAPES = {
    "inserts of 45 MB": (inserts, READS),
    "inserts of 45 MB, compressed": (lambda: compressed(inserts()), READS),
    "announcements of 45 MB": (announcements, UNREAD),
    "find, $in of 1.3 million": (finds, READS),
    "the same, compressed": (lambda: compressed(finds()), READS),
    "find, $or of 700,000": (ors, READS),
    "count, $in of 1.3 million": (counts, READS),
    "delete, $in of 1.3 million": (deletes, READS),
    "update, $in of 1.3 million": (updates, READS),
    "$match, $in of 1.3 million": (matches, READS),
    "scans of 16 MB": (scans, READS),
    "scans of 16 MB, unread": (scans, UNREAD),
    "scans that go on by themselves, unread": (scans_without_end, UNREAD),
    "scans by OP_QUERY, unread": (old_scans, UNREAD),
    "documents of 15 MB": (long_documents, READS),
    "documents of 15 MB, unread": (long_documents, UNREAD),
    "sorts of 18 MB": (sorts, READS),
    "groups of 18 MB": (groups, READS),
    "index builds": (builds, READS),
    "inserts under wildcard indexes": (wildcards, READS),
    "inserts of texts of 4 MB": (texts, READS),
    "scripts of 70 MB": (scripts, READS),
}

# Shapes that run only if they are named: after all others, this one comes within a tenth of the limit.
ASKED_FOR = {"inserts of texts of 4 MB"}


def receive(connection, count):
    parts = []
    while count:
        part = connection.recv(min(count, 1 << 20))
        if not part:
            raise ConnectionError
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def reply(connection):
    head = receive(connection, 16)
    length, _, _, op_code = struct.unpack("<iiii", head)
    content = receive(connection, length - 16)
    if op_code == OP_COMPRESSED:
        op_code, _, _ = struct.unpack("<iiB", content[:9])
        content = zlib.decompress(content[9:])
    return content[5:]


def next_batch(raw):
    """The getMore that a reply asks for, if any; and the outcome of the reply."""
    document = RawBSONDocument(raw)
    if not document.get("ok"):
        return None, f"code {document.get('code')}"
    cursor = document.get("cursor")
    if cursor and cursor["id"]:
        collection = cursor["ns"].split(".", 1)[1]
        return message({"getMore": bson.Int64(cursor["id"]), "collection": collection, "$db": "t"}), "answered"
    return None, "answered"


def client(port, request, reads, end, counts):
    """Asks again and again, until the time is over."""
    while time.monotonic() < end:
        outcome = "unserved"
        try:
            with socket.create_connection(("127.0.0.1", port), 20) as connection:
                connection.settimeout(max(0.1, end - time.monotonic()))
                if reads == UNREAD:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                connection.sendall(request)
                if reads == UNREAD:
                    time.sleep(max(0, end - time.monotonic()))
                    outcome = "unread"
                else:
                    asked, outcome = request, None
                    while asked:
                        asked, outcome = next_batch(reply(connection))
                        if asked:
                            connection.sendall(asked)
        except TimeoutError:
            outcome = "unserved"
        except OSError:
            outcome = "closed"
            time.sleep(0.1)
        counts[outcome] += 1


def crowd(port, shape, numbers, seconds, results):
    make, reads = SHAPES[shape]
    takes_number = make.__code__.co_argcount == 1
    shared = None if takes_number else make()
    counts = collections.Counter()
    results.put("ready")
    end = time.monotonic() + seconds
    clients = [
        threading.Thread(target=client, args=(port, make(n) if takes_number else shared, reads, end, counts), daemon=True)
        for n in numbers]
    for thread in clients:
        thread.start()
    for thread in clients:
        thread.join(max(0.1, end + 2 - time.monotonic()))
    counts["unserved"] += sum(thread.is_alive() for thread in clients)
    results.put(dict(counts))
    results.close()
    results.join_thread()
    os._exit(0)


def bystander(port, stop, results):
    """Finds documents by _id, and sorts a few now and then: the time of each, or the error."""
    finds, sorts = [], []
    found = pymongo.MongoClient(
        "127.0.0.1", port, directConnection=True, retryReads=False, socketTimeoutMS=BYSTANDER_PATIENCE * 1000)
    try:
        last_sort = 0
        while not stop.is_set():
            begun = time.monotonic()
            if found.t.by.find_one({"_id": 7})["n"] != 7:
                raise ValueError("a find by _id answers wrongly")
            finds.append(time.monotonic() - begun)
            if begun - last_sort > 0.5:
                last_sort = time.monotonic()
                if [d["n"] for d in found.t.by.find().sort("n", -1).limit(3)] != [1999, 1998, 1997]:
                    raise ValueError("a sort answers wrongly")
                sorts.append(time.monotonic() - last_sort)
            time.sleep(0.01)
        results.put((finds, sorts, None))
    except (pymongo.errors.PyMongoError, ValueError) as error:
        results.put((finds, sorts, str(error)))


class Server:
    """A server inside the control group."""

    def __init__(self, arguments):
        log = pathlib.Path(arguments.work, "crowds.log")
        serve = [arguments.binary, "serve", "--port", "0", "--dbpath", f"{arguments.work}/crowds", "--log-format", "json",
                 "--no-unix-socket"]
        into_group = ["bash", "-c", 'echo $$ >"$1" && shift && exec "$@"', "bounded", f"{arguments.group}/cgroup.procs"]
        with open(log, "w") as file:
            self.process = subprocess.Popen(into_group + serve, stdout=file, stderr=subprocess.STDOUT)
        while True:
            found = [word for word in log.read_text().split('"') if word.startswith("mongodb://127.")]
            if found:
                break
            if self.process.poll() is not None:
                sys.exit(f"FAILED bounded_memory: the server did not start:\n{log.read_text()}")
            time.sleep(0.1)
        self.port = int(found[0].rstrip("/").rsplit(":", 1)[1])

    def is_alive(self):
        return self.process.poll() is None

    def peak_mb(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return next((int(line.split()[1]) // 1000 for line in status.splitlines() if line.startswith("VmHWM")), None)

    def forget_peak(self):
        pathlib.Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")


def prepare(database):
    for k in range(6):
        database.c.insert_many([{"_id": k * 1000 + i, "s": f"{i:04}" + "x" * 3000} for i in range(1000)])
    database.by.insert_many([{"_id": i, "n": i} for i in range(2000)])
    database.e.insert_many([{"_id": i, "a": i} for i in range(10)])
    database.long.insert_one({"_id": 1, "s": "x" * 15_000_000})
    for i in range(8):
        database.wild.create_index([(f"f{i}.$**" if i else "$**", 1)])
    database.words.create_index([("text", "text")])


def try_shape(server, shape, arguments, administrator):
    """The outcome: a line of the table, and the faults."""
    results, seen, stop = multiprocessing.Queue(), multiprocessing.Queue(), multiprocessing.Event()
    server.forget_peak()
    numbers = range(arguments.clients)
    parts = [
        multiprocessing.Process(
            target=crowd, args=(server.port, shape, numbers[part::PROCESSES], arguments.seconds, results), daemon=True)
        for part in range(PROCESSES)]
    for part in parts:
        part.start()
    for _ in parts:
        results.get()
    watching = multiprocessing.Process(target=bystander, args=(server.port, stop, seen), daemon=True)
    watching.start()
    counts = collections.Counter()
    for _ in parts:
        counts.update(results.get())
    wrong = wait_for_peace(server, administrator)
    stop.set()
    finds, sorts, failed = seen.get(timeout=BYSTANDER_PATIENCE + 10)
    if not server.is_alive():
        return None, [f"the server is gone: status {server.process.returncode}"]
    if failed:
        wrong.append(f"a bystander's request failed: {failed}")
    finds.sort()
    refused = ", ".join(f"{outcome}: {count}" for outcome, count in sorted(counts.items()) if outcome.startswith("code"))
    line = [shape, server.peak_mb(), counts["answered"], refused or "-", counts["closed"], counts["unserved"] + counts["unread"],
            f"{1000 * finds[len(finds) * 99 // 100]:.0f}" if finds else "-", f"{max(sorts):.2f}" if sorts else "-"]
    return line, wrong


def wait_for_peace(server, administrator):
    """Waits until nothing is left of a crowd that has gone; returns the faults."""
    begun = time.monotonic()
    while server.is_alive():
        try:
            status = administrator.admin.command("serverStatus")["bunko"]["memory"]
        except pymongo.errors.PyMongoError as error:
            if server.is_alive():
                return [f"an administrator's serverStatus failed: {error}"]
            break
        if status["messageBytes"] == 0 and status["replyBytes"] == 0 and status["waiting"] == 0:
            return []
        if time.monotonic() - begun > AFTERMATH:
            return [f"what a crowd held is not given back: {status}"]
        time.sleep(0.1)
    return []


def wanted(arguments):
    if arguments.shape:
        return [shape for shape in SHAPES if any(part in shape for part in arguments.shape)]
    usual = [shape for shape in SHAPES if shape not in ASKED_FOR]
    return usual if arguments.half is None else usual[arguments.half::2]


def main():
    parser = argparse.ArgumentParser()
    for name in ("binary", "group", "work"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=3, help="how long each crowd lasts")
    parser.add_argument("--shape", action="append", help="shapes whose names contain that, instead of those that run by themselves")
    parser.add_argument("--half", type=int, choices=(0, 1), help="only every second of the shapes that run by themselves, from this one on")
    arguments = parser.parse_args()
    server, failed = Server(arguments), []
    administrator = pymongo.MongoClient("127.0.0.1", server.port, directConnection=True, serverSelectionTimeoutMS=20_000)
    prepare(administrator.t)
    columns = ["shape", "peak, MB", "answered", "refused", "closed", "unserved", "find p99, ms", "longest sort, s"]
    print("| " + " | ".join(columns) + " |\n|" + "---|" * len(columns), flush=True)
    for shape in wanted(arguments):
        line, wrong = try_shape(server, shape, arguments, administrator)
        if line:
            print("| " + " | ".join(map(str, line)) + " |", flush=True)
        failed += [f"{shape}: {what}" for what in wrong]
        if not server.is_alive():
            print(f"| {shape} | killed |", flush=True)
            server = Server(arguments)
            administrator = pymongo.MongoClient("127.0.0.1", server.port, directConnection=True)
    server.process.terminate()
    if server.process.wait(60) != 0:
        failed.append(f"the server did not end in order: status {server.process.returncode}")
    for what in failed:
        print(f"FAILED bounded_memory: {what}")
    return 1 if failed else 0


if __name__ == "__main__":
    multiprocessing.set_start_method("fork")
    sys.exit(main())
