"""Flower's server for one device, in memory, on the origin of a page: registered keys, signed headers, one request.

with SuperLink(DEMO_FOLDER) as server: ...
"""

import base64
import functools
import hashlib
import importlib.machinery
import importlib.util
import struct
import subprocess
import tempfile
import threading
import time
from datetime import datetime
from http.server import ThreadingHTTPServer
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PATH = "/fleet/v1/fleet/"
NODE, RUN = 1001, 77


def page_handler():
    """The class that serves the demo, from a program without a suffix."""
    path = str(ROOT / "ports/wasm/demo/serve")
    spec = importlib.util.spec_from_loader("serve", importlib.machinery.SourceFileLoader("serve", path))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Handler


def varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def field(number, value):
    """A field of protobuf: a whole number, a double, or bytes."""
    if isinstance(value, float):
        return varint(number << 3 | 1) + struct.pack("<d", value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def fields(body):
    """All fields of a message, as lists by their numbers."""
    found, at = {}, 0

    def number():
        nonlocal at
        value, shift = 0, 0
        while True:
            value |= (body[at] & 127) << shift
            shift, at = shift + 7, at + 1
            if body[at - 1] < 128:
                return value

    while at < len(body):
        key = number()
        if key & 7 == 0:
            value = number()
        else:
            size = number() if key & 7 == 2 else 8
            value, at = body[at : at + size], at + size
        found.setdefault(key >> 3, []).append(value)
    return found


def made_object(kind, child, body):
    content = f"{kind} {child} {len(body)}".encode() + b"\0" + body
    return hashlib.sha256(content).hexdigest(), content


def config_record(values):
    """Flower's kinds of values: 2 a whole number, 5 a text, 6 bytes."""
    coded = b""
    for key, value in values.items():
        kind = 2 if isinstance(value, int) else 5 if isinstance(value, str) else 6
        inner = field(kind, 2 * value if kind == 2 else value.encode() if kind == 5 else value)
        coded += field(1, field(1, key.encode()) + field(2, inner))
    return coded


def record_values(object_):
    """The values of a ConfigRecord's object, each as protobuf has it."""
    items = [fields(item) for item in fields(object_.split(b"\0", 1)[1])[1]]
    return {item[1][0].decode(): next(iter(fields(item[2][0]).values()))[0] for item in items}


class SuperLink:
    """`calls` has the routes that were called, `key` the PEM of the device, `replies` its objects by kind. `clock` says
    how many seconds the server's clock is ahead of the device's. `faults` are the next answers: statuses, or an event
    that the server waits for."""

    def __init__(self, folder):
        self.calls, self.replies, self.faults = [], {}, []
        self.signed = set()  # timestamps with their signatures
        self.forget()
        self.request, self.objects = b"", {}
        self.clock = 0
        link = self

        class Handler(page_handler()):
            def date_time_string(self, timestamp=None):
                return super().date_time_string(time.time() + link.clock if timestamp is None else timestamp)

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                status, answer = 404, b""
                if self.path.startswith(PATH):
                    status, answer = link.answer(self.path[len(PATH) :], self.headers, body)
                self.send_response(status)
                if status == 307:
                    self.send_header("location", "/elsewhere")
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=folder))
        self.address = f"http://localhost:{self.server.server_port}/"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def forget(self):
        self.key, self.known, self.online = None, False, False

    def ask(self, values):
        """The device's next question for work gets this record as a request."""
        record, record_content = made_object("ConfigRecord", "", config_record(values))
        record_dict, dict_content = made_object("RecordDict", record, f'{{"wisp": "{record}"}}'.encode())
        metadata = [field(1, RUN), field(3, 1), field(4, NODE), field(6, b"1"), field(7, 3600.0), field(8, b"train")]
        metadata.append(field(9, float(int(time.time() + self.clock))))
        message, content = made_object("Message", record_dict, field(1, b"".join(metadata)))
        metadata.insert(1, field(2, message.encode()))
        tree = field(1, record_dict.encode()) + field(2, field(1, record.encode()))
        self.request = field(2, field(1, b"".join(metadata))) + field(3, field(1, message.encode()) + field(2, tree))
        self.objects = {message: content, record_dict: dict_content, record: record_content}

    def is_signed(self, headers):
        key, timestamp = base64.b64decode(headers["flwr-public-key"]), headers["flwr-timestamp"]
        signature = base64.b64decode(headers["flwr-signature"])
        if abs(time.time() + self.clock - datetime.fromisoformat(timestamp).timestamp()) > 305:
            return False
        if self.key not in (None, key):
            return False
        self.key = key
        self.signed.add((timestamp, signature))
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "key").write_bytes(key)
            (Path(folder) / "signature").write_bytes(signature)
            verify = ["openssl", "dgst", "-sha256", "-verify", "key", "-signature", "signature"]
            return subprocess.run(verify, cwd=folder, input=timestamp.encode(), capture_output=True).returncode == 0

    def answer(self, route, headers, body):
        self.calls.append(route)
        if self.faults:
            fault = self.faults.pop(0)
            if isinstance(fault, threading.Event):
                fault.wait(60)
                return 503, b""
            return fault, b""
        if headers["content-type"] != "application/protobuf" or not self.is_signed(headers):
            return 401, b'{"detail":"Invalid SuperNode authentication"}'
        sent = fields(body)
        if route == "register-node":
            if self.known:
                return 412, b'{"code":23}'
            self.known = sent[1] == [self.key]
            return 200, field(1, NODE)
        if route == "activate-node":
            if not self.known or self.online:
                return 412, b'{"code":2004}'
            self.online = True
            return 200, field(1, NODE)
        if route == "send-node-heartbeat":
            return 200, field(1, 1)
        if route == "pull-messages":
            request, self.request = self.request, b""
            return 200, request
        if route == "pull-object":
            content = self.objects.get(sent[3][0].decode())
            return 200, b"" if content is None else field(1, 1) + field(2, 1) + field(3, content)
        if route == "push-messages":
            tree, ids = fields(sent[3][0]), []
            while tree:
                ids.insert(0, tree[1][0])
                tree = fields(tree[2][0]) if 2 in tree else None
            return 200, b"".join(field(3, id_) for id_ in ids) + field(4, b"session")
        if route == "push-object":
            content = sent[4][0]
            stored = hashlib.sha256(content).hexdigest().encode() == sent[3][0] and sent[5] == [b"session"]
            self.replies[content.split(b" ", 1)[0].decode()] = content
            return 200, field(1, int(stored))
        return 200 if route == "confirm-message-received" else 404, b""
