"""Slow operations, as the official library of OpenTelemetry reads them: spans.py BINARY FOLDER

Starts a collector and a server in FOLDER, and runs commands in the server's own shell. Every request must be a message of the
protocol without unknown fields.
"""

import http.server
import pathlib
import queue
import re
import subprocess
import sys
import threading
import time

from google.protobuf.unknown_fields import UnknownFieldSet
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest, ExportTraceServiceResponse
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

binary, folder = sys.argv[1], pathlib.Path(sys.argv[2])
TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
requests = queue.Queue()


class Collector(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        requests.put((self.path, self.headers["Content-Type"], self.rfile.read(int(self.headers["Content-Length"]))))
        answer = ExportTraceServiceResponse().SerializeToString()
        self.send_response(200)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


def unknown_fields(message):
    """The messages in `message`, itself included, that have fields which the protocol does not."""
    if len(UnknownFieldSet(message)):
        yield message
    for field, value in message.ListFields():
        if field.message_type:
            for inner in value if hasattr(value, "append") else [value]:
                yield from unknown_fields(inner)


def plain(attributes):
    return {attribute.key: getattr(attribute.value, attribute.value.WhichOneof("value")) for attribute in attributes}


def address_of(log):
    for _ in range(600):
        found = re.search(r"mongodb://127\.0\.0\.1:\d+/", log.read_text())
        if found:
            return found.group()
        time.sleep(0.1)
    sys.exit(f"the server does not start:\n{log.read_text()}")


collector = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector)
threading.Thread(target=collector.serve_forever, daemon=True).start()
endpoint = f"http://127.0.0.1:{collector.server_address[1]}"
log = folder / "spans.log"
server = subprocess.Popen(
    [binary, "serve", "--dbpath", folder / "spans", "--port", "0", "--slowms", "0", "--opentelemetry-http-endpoint", endpoint],
    stdout=log.open("w"),
    stderr=subprocess.STDOUT,
)
try:
    script = f"""
        db.things.insertMany([{{_id: 1, owner: 'canary'}}, {{_id: 2, owner: 'canary'}}]);
        db.things.find({{owner: 'canary'}}).comment('00-{TRACE}-{PARENT}-01').toArray();
        db.things.updateMany({{owner: 'canary'}}, {{$set: {{paid: 'canary'}}}});
        try {{ db.things.aggregate([{{$canary: 1}}]).toArray() }} catch (refused) {{ print(refused.codeName) }}
    """
    subprocess.run([binary, "shell", "--quiet", address_of(log), "--eval", script], check=True, timeout=60)
    spans = []
    deadline = time.monotonic() + 60
    while not any(span.name.startswith("aggregate ") for span in spans):
        path, kind, body = requests.get(timeout=max(0.1, deadline - time.monotonic()))
        assert (path, kind) == ("/v1/traces", "application/x-protobuf"), (path, kind)
        assert b"canary" not in body, body
        message = ExportTraceServiceRequest.FromString(body)
        assert not list(unknown_fields(message)), message
        [of_resource] = message.resource_spans
        assert plain(of_resource.resource.attributes)["service.name"] == "bunko", message
        [scope] = of_resource.scope_spans
        assert scope.scope.name == "bunko", message
        spans.extend(scope.spans)
finally:
    server.terminate()
    server.wait(60)

for span in spans:
    assert len(span.trace_id) == 16 and len(span.span_id) == 8 and len(span.parent_span_id) in (0, 8), span
    assert 0 < span.start_time_unix_nano <= span.end_time_unix_nano, span
    assert plain(span.attributes)["db.system.name"] == "mongodb", span
    assert (span.status.code == Status.STATUS_CODE_ERROR) == ("error.type" in plain(span.attributes)), span
[find] = [span for span in spans if span.name == "find things"]
assert (find.trace_id.hex(), find.parent_span_id.hex(), find.kind) == (TRACE, PARENT, Span.SPAN_KIND_SERVER), find
facts = plain(find.attributes)
assert (facts["bunko.plan_summary"], facts["bunko.docs_examined"], facts["bunko.used_disk"]) == ("COLLSCAN", 2, False), find
statement, update = sorted((span for span in spans if span.name == "update things"), key=lambda span: span.kind)
assert (statement.trace_id, statement.parent_span_id) == (update.trace_id, update.span_id), (statement, update)
[refused] = [span for span in spans if span.name.startswith("aggregate ")]
assert refused.status.message == "Location40324" and plain(refused.attributes)["error.type"] == "40324", refused
print(f"{len(spans)} spans were read by the official library")
