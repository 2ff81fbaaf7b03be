"""Flower for tests: its SuperLink as a process, a Grid in this process, and nodes that say whatever a test wants."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import datetime
import hashlib
import json
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import httpx
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from flwr.app.message.message import Message  # noqa: F401  (its import order matters to flwr)
from flwr.cli.build import build_fab_from_disk
from flwr.common.serde import run_from_proto
from flwr.proto import control_pb2, fleet_pb2, message_pb2, node_pb2, recorddict_pb2, runtime_pb2
from flwr.supercore.heartbeat import HeartbeatSender, make_task_heartbeat_fn_http
from flwr.supercore.task_identity import TaskIdentity
from flwr.superlink.grid import HttpGrid

BIN = pathlib.Path(sys.executable).parent
_APP = """
[project]
name = "fleet"
version = "0.1.0"
dependencies = []
[tool.flwr.app]
publisher = "wisp"
[tool.flwr.app.components]
serverapp = "server:app"
clientapp = "client:app"
"""
_SERVER = "from flwr.serverapp import ServerApp\n\napp = ServerApp()\n"
_CLIENT = "from flwr.clientapp import ClientApp\n\napp = ClientApp()\n"


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


class SuperLink:
    """A SuperLink on loopback. With `tls` (ca.crt, server.crt, server.key) it admits enrolled keys alone."""

    def __init__(
        self, folder: pathlib.Path, *, tls: pathlib.Path | None = None, client: str = _CLIENT, server: str = _SERVER
    ) -> None:
        self.folder, self.tls, self.port = folder, tls, free_port()
        self.env = {
            **os.environ,
            "FLWR_HOME": str(folder / "home"),
            "FLWR_TELEMETRY_ENABLED": "0",
            "PATH": f"{BIN}:{os.environ['PATH']}",
        }
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"
        self.http = httpx.Client(verify=str(tls / "ca.crt") if tls else True, timeout=30)
        (folder / "app").mkdir(parents=True, exist_ok=True)
        (folder / "app" / "pyproject.toml").write_text(_APP)
        (folder / "app" / "server.py").write_text(server)
        (folder / "app" / "client.py").write_text(client)
        (folder / "home").mkdir(exist_ok=True)
        (folder / "home" / "config.toml").write_text(
            f'[superlink]\ndefault = "test"\n[superlink.test]\naddress = "127.0.0.1:{self.port}"\n'
            + (f'root-certificates = "{tls / "ca.crt"}"\n' if tls else "insecure = true\n")
        )
        self.start()

    def start(self) -> None:
        secure = ["--insecure"]
        if self.tls:
            files = (("ssl-ca-certfile", "ca.crt"), ("ssl-certfile", "server.crt"), ("ssl-keyfile", "server.key"))
            secure = [word for name, file in files for word in (f"--{name}", str(self.tls / file))]
            secure.append("--enable-supernode-auth")
        with open(self.folder / "superlink.log", "a") as log:
            self.process = subprocess.Popen(
                [BIN / "flower-superlink", *secure, "--port", str(self.port), "--isolation", "process"],
                stdout=log, stderr=log, env=self.env,
            )  # fmt: skip
        for _ in range(600):
            with contextlib.suppress(httpx.TransportError):
                if self.http.get(self.url + "/health").status_code == 200:
                    return
            assert self.process.poll() is None, (self.folder / "superlink.log").read_text()
            time.sleep(0.1)
        raise AssertionError("the SuperLink did not start")

    def stop(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def _call(self, route: str, request, reply):
        headers = {"content-type": "application/protobuf"}
        answer = self.http.post(f"{self.url}/v1/{route}", content=request.SerializeToString(), headers=headers)
        assert answer.status_code == 200, answer.text
        return reply.FromString(answer.content)

    @contextlib.contextmanager
    def grid(self) -> Iterator[HttpGrid]:
        """A run of an empty app, whose Grid is in this process."""
        fab = build_fab_from_disk(self.folder / "app")
        start = control_pb2.StartRunRequest()
        start.fab.hash_str, start.fab.content = hashlib.sha256(fab).hexdigest(), fab
        self._call("control/start-run", start, control_pb2.StartRunResponse)
        take = runtime_pb2.AcquireTaskRequest(supported_task_types=["flwr-serverapp"])
        task = self._call("runtime/acquire-task", take, runtime_pb2.AcquireTaskResponse)
        grid = HttpGrid(
            runtime_api_address=f"127.0.0.1:{self.port}",
            insecure=not self.tls,
            root_certificates=(self.tls / "ca.crt").read_bytes() if self.tls else None,
            token=task.token,
        )
        client = grid._runtime_client
        heartbeat = HeartbeatSender(make_task_heartbeat_fn_http(client))
        heartbeat.start()
        taken = client.PullTaskInput(runtime_pb2.PullTaskInputRequest())
        grid.set_run(run_from_proto(taken.run))
        TaskIdentity.task_id, TaskIdentity.run_id = taken.task_id, taken.run.run_id
        TaskIdentity.node_id = taken.context.node_id
        try:
            yield grid
        finally:
            heartbeat.stop()
            with contextlib.suppress(Exception):
                done = runtime_pb2.PushTaskOutputRequest(sub_status="completed")
                client.PushTaskOutput(done)


@dataclasses.dataclass
class Request:
    """What a node was sent."""

    metadata: object
    record: dict

    def reply_metadata(self):
        md, now = self.metadata, time.time()
        reply = message_pb2.Metadata(
            run_id=md.run_id, src_node_id=md.dst_node_id, dst_node_id=md.src_node_id, group_id=md.group_id,
            reply_to_message_id=md.message_id, ttl=md.created_at + md.ttl - now, message_type=md.message_type,
            created_at=now,
        )  # fmt: skip
        if md.HasField("dst_task_id"):
            reply.src_task_id = md.dst_task_id
        if md.HasField("src_task_id"):
            reply.dst_task_id = md.src_task_id
        return reply


class Objects:
    """Objects of one reply; a tree names them."""

    def __init__(self) -> None:
        self.bytes: dict[str, bytes] = {}

    def put(self, kind: str, children: list, body: bytes):
        content = f"{kind} {','.join(child.object_id for child in children)} {len(body)}".encode() + b"\0" + body
        name = hashlib.sha256(content).hexdigest()
        self.bytes[name] = content
        return message_pb2.ObjectTree(object_id=name, children=children)

    def config(self, values: dict):
        record = recorddict_pb2.ConfigRecord()
        for key, value in values.items():
            item = record.items.add()
            item.key = key
            kind = {int: "sint64", str: "string", bytes: "bytes", float: "double"}[type(value)]
            setattr(item.value, kind, value)
        leaf = self.put("ConfigRecord", [], record.SerializeToString())
        return self.put("RecordDict", [leaf], json.dumps({"wisp": leaf.object_id}).encode())

    def message(self, metadata, content=None, error=None):
        message = message_pb2.Message(metadata=metadata)
        if error:
            message.error.CopyFrom(error)
        return self.put("Message", [content] if content else [], message.SerializeToString(deterministic=True))


def _leaf_first(tree) -> Iterator[str]:
    for child in tree.children:
        yield from _leaf_first(child)
    yield tree.object_id


class Node:
    """A node that a test drives: join, pull, push."""

    def __init__(self, link: SuperLink, *, clock: float = 0, key: ec.EllipticCurvePrivateKey | None = None) -> None:
        self._key, self._clock = key or ec.generate_private_key(ec.SECP256R1()), clock
        self._url, self._offset = link.url, 0.0
        self._http = httpx.Client(verify=str(link.tls / "ca.crt") if link.tls else True, timeout=30)
        form = serialization.PublicFormat.SubjectPublicKeyInfo
        self.pem = self._key.public_key().public_bytes(serialization.Encoding.PEM, form)
        self.calls = 0
        if key is None:
            self.call("register-node", fleet_pb2.RegisterNodeFleetRequest(public_key=self.pem))
        request = fleet_pb2.ActivateNodeRequest(public_key=self.pem, heartbeat_interval=600.0)
        self.id = self.call("activate-node", request, fleet_pb2.ActivateNodeResponse).node_id
        self.node = node_pb2.Node(node_id=self.id)

    def _post(self, route: str, body: bytes) -> httpx.Response:
        when = datetime.datetime.fromtimestamp(time.time() + self._clock + self._offset, datetime.UTC).isoformat()
        headers = {
            "content-type": "application/protobuf",
            "flwr-public-key": base64.b64encode(self.pem).decode(),
            "flwr-timestamp": when,
            "flwr-signature": base64.b64encode(self._key.sign(when.encode(), ec.ECDSA(hashes.SHA256()))).decode(),
        }
        self.calls += 1
        for _ in range(3):
            with contextlib.suppress(httpx.TransportError):
                return self._http.post(f"{self._url}/v1/fleet/{route}", content=body, headers=headers)
        raise AssertionError(f"{route}: no answer")

    def call(self, route: str, request, reply=None):
        body = request.SerializeToString(deterministic=True)
        answer = self._post(route, body)
        if answer.status_code == 401 and self._clock and not self._offset:  # a clock that is wrong: the server's
            date = datetime.datetime.strptime(answer.headers["date"], "%a, %d %b %Y %H:%M:%S GMT")
            self._offset = date.replace(tzinfo=datetime.UTC).timestamp() - (time.time() + self._clock)
            answer = self._post(route, body)
        if answer.status_code != 200:
            raise RuntimeError(f"{route}: {answer.status_code} {answer.text[:300]}")
        return reply.FromString(answer.content) if reply else None

    def announced(self):
        """The next message's metadata and tree, without its objects; None: nothing waits."""
        request = fleet_pb2.PullMessagesRequest(node=self.node)
        found = self.call("pull-messages", request, fleet_pb2.PullMessagesResponse)
        return (found.messages_list[0].metadata, found.message_object_trees[0]) if found.messages_list else None

    def pull(self) -> Request | None:
        if not (found := self.announced()):
            return None
        metadata, tree = found
        leaf, *_, root = _leaf_first(tree)
        parts = {}
        for name in (leaf, root):
            request = message_pb2.PullObjectRequest(node=self.node, run_id=metadata.run_id, object_id=name)
            for _ in range(100):
                part = self.call("pull-object", request, message_pb2.PullObjectResponse)
                if part.object_available:
                    break
                time.sleep(0.1)
            parts[name] = part.object_content
        self.confirm(metadata)
        record = recorddict_pb2.ConfigRecord.FromString(parts[leaf][parts[leaf].index(b"\0") + 1 :])
        values = {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in record.items}
        return Request(metadata, values)

    def confirm(self, metadata) -> None:
        self.call(
            "confirm-message-received",
            message_pb2.ConfirmMessageReceivedRequest(
                node=self.node, run_id=metadata.run_id, message_object_id=metadata.message_id
            ),
        )

    def push(self, objects: Objects, root, metadata, *, error=None, most: int | None = None, tree=None) -> int:
        """Pushes a reply; returns how many of its objects the server took. most: stop after so many objects."""
        message = message_pb2.Message(metadata=metadata)
        message.metadata.message_id = root.object_id
        if error:
            message.error.CopyFrom(error)
        else:
            message.content.SetInParent()
        tree = tree or root
        request = fleet_pb2.PushMessagesRequest(node=self.node, messages_list=[message], message_object_trees=[tree])
        session = self.call("push-messages", request, fleet_pb2.PushMessagesResponse)
        stored = 0
        wanted = [name for name in dict.fromkeys(_leaf_first(tree)) if name in set(session.objects_to_push)]
        for name in wanted[:most]:
            stored += self.call(
                "push-object",
                message_pb2.PushObjectRequest(
                    node=self.node, run_id=metadata.run_id, object_id=name, object_content=objects.bytes[name],
                    session_id=session.session_id,
                ),
                message_pb2.PushObjectResponse,
            ).stored  # fmt: skip
        return stored

    def answer(self, request: Request, update: bytes, **other: object) -> int:
        """An honest reply, except for the values in `other`."""
        objects, metadata = Objects(), request.reply_metadata()
        values = {
            "plan": hashlib.sha256(request.record["plan"].encode()).hexdigest(),
            "task": request.record["task"],
            "round": request.record["round"],
            "nonce": os.urandom(16),
            "update": update,
            **other,
        }
        return self.push(objects, objects.message(metadata, objects.config(values)), metadata)


@contextlib.contextmanager
def serving(node: Node, serve: Callable[[Node, Request], None], every: float = 0.3) -> Iterator[Node]:
    """Calls serve(node, request) for each request, in a thread."""
    done, faults = threading.Event(), []

    def work() -> None:
        while not done.wait(every * random.uniform(0.5, 1.5)):
            try:
                if request := node.pull():
                    serve(node, request)
            except Exception as fault:
                if not done.is_set():
                    faults.append(fault)
                return

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield node
    finally:
        done.set()
        thread.join()
    assert not faults, faults
