"""wisp.fleet over Flower: a real SuperLink on loopback, with nodes that are honest and nodes that are not."""

import collections
import contextlib
import hashlib
import json
import pathlib
import subprocess
import sys
import threading
import time
import types

import pytest
import wisp

pytest.importorskip("flwr")

import flwr.app  # noqa: E402
from conftest import CAFE, ROOT  # noqa: E402
from cryptography.hazmat.primitives import hashes, serialization  # noqa: E402
from cryptography.hazmat.primitives.asymmetric import ec  # noqa: E402
from fleet_util import weights_of  # noqa: E402
from flower_rig import BIN, Node, Objects, Request, SuperLink, TaskIdentity, free_port, serving  # noqa: E402
from flwr.proto import error_pb2, message_pb2  # noqa: E402
from wisp import _core  # noqa: E402
from wisp.fleet import PrivateFleet, simulate  # noqa: E402

SEED = 11


@pytest.fixture
def superlink(tmp_path):
    link = SuperLink(tmp_path / "superlink")
    yield link
    link.stop()


class Honest:
    """Nodes that answer as devices do; the node number i holds user i of the log."""

    def __init__(self, plan: pathlib.Path, log: pathlib.Path, nodes: list[Node]) -> None:
        self.plan, self.log, self.ids = plan, log, [node.id for node in nodes]
        self._fleet = _core.FleetSimulation(str(plan), str(CAFE), str(log), nodes=self.ids, threads=1)
        self.zero = bytes(json.loads(plan.read_text())["num_weights"])
        self.kept: list[int] = []
        self.seen: Request | None = None

    def update(self, node: Node, request: Request) -> bytes:
        record = request.record
        (update,) = self._fleet.answer(record["task"], record["round"], record["weights"], [node.id])
        return update

    def serve(self, node: Node, request: Request) -> None:
        if request.record["task"] == "keep":
            self.kept.append(node.id)
        elif update := self.update(node, request):
            assert node.answer(request, update) == 3

    def simulated(self, folder: pathlib.Path) -> bytes:
        """The weights that a simulation of these nodes ends with."""
        simulate(self.plan, CAFE, self.log, folder=folder, seed=SEED, threads=1, nodes=self.ids)
        return weights_of(self.plan, folder, SEED)


def test_three_nodes_learn_what_a_simulation_learns(superlink, make_plan, guests, tmp_path):
    plan = make_plan(devices=3, rounds=3, bits=16)
    key = ec.generate_private_key(ec.SECP256R1())
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (tmp_path / "key.pem").write_bytes(key.private_bytes(*form))
    nodes = [Node(superlink) for _ in range(3)]
    honest = Honest(plan, guests, nodes)

    def serve(node, request):
        told = request.record
        text = f"wisp fleet\n{told['task']}\n{told['round']}\n" + "\n".join(
            hashlib.sha256(part).hexdigest() for part in (told["plan"].encode(), told["weights"])
        )
        key.public_key().verify(told["signature"], text.encode(), ec.ECDSA(hashes.SHA256()))
        honest.serve(node, request)

    fleet = PrivateFleet(plan, CAFE, tmp_path / "films", seed=SEED, operator_key=tmp_path / "key.pem")
    with superlink.grid() as grid, contextlib.ExitStack() as stack:
        for node in nodes:
            stack.enter_context(serving(node, serve))
        result = fleet.run(grid)
    assert [(line["asked"], line["added"], line["absent"]) for line in result["rounds"]] == [(3, 3, {})] * 3
    assert sorted(honest.kept) == sorted(honest.ids)
    assert weights_of(plan, tmp_path / "films", SEED) == honest.simulated(tmp_path / "simulated")


def _device_logs(guests: pathlib.Path, folder: pathlib.Path, count: int) -> list[pathlib.Path]:
    """The log of each of the first users alone. Users are counted by their first event, as a simulation does."""
    events = collections.defaultdict(list)
    with wisp.Log.open(guests) as log:
        for user, item, at in log:
            events[user].append((user, item, at))
    paths = []
    for i, user in enumerate(sorted(events, key=lambda user: min(at for *_, at in events[user]))[:count]):
        paths.append(folder / f"device{i}.db")
        with wisp.Log.open(paths[-1]) as log:
            log.append_all(events[user])
    return paths


def test_wisp_node_learns_what_a_simulation_learns(superlink, make_plan, program, build, guests, tmp_path):
    if not (build / "wisp-node").exists():
        pytest.skip("this build has no wisp-node")
    policy = tmp_path / "policy.json"
    plan = make_plan(devices=3, rounds=3, policy=policy, server=superlink.url)
    with superlink.grid() as grid, contextlib.ExitStack() as stack:
        ids: list[int] = []
        for i, log in enumerate(_device_logs(guests, tmp_path, 3)):
            words = [f"--policy={policy}", f"--data={log}", f"--model={CAFE}", f"--ledger={tmp_path}/{i}.ledger"]
            words += [f"--output={tmp_path}/{i}.wisp", "--ask-seconds=1"]
            node = subprocess.Popen([build / "wisp", "node", *words], stderr=subprocess.PIPE, text=True)
            stack.callback(node.communicate)
            stack.callback(node.terminate)
            for _ in range(100):
                if new := set(grid.get_node_ids()) - set(ids):
                    break
                assert node.poll() is None, node.communicate()[1]
                time.sleep(0.1)
            ids += new
        result = PrivateFleet(plan, CAFE, tmp_path / "films", seed=SEED, round_seconds=60).run(grid)
    assert [line["added"] for line in result["rounds"]] == [3, 3, 3]
    simulate(plan, CAFE, guests, folder=tmp_path / "simulated", seed=SEED, threads=1, nodes=ids)
    assert weights_of(plan, tmp_path / "films", SEED) == weights_of(plan, tmp_path / "simulated", SEED)
    for i in range(3):
        assert "charges: 3" in wisp.privacy_statement(tmp_path / f"{i}.ledger", 1e-5)


def test_a_fleet_on_one_machine(build, tmp_path):
    """`flwr run` starts the app, as in `tools/dev fleet`."""
    if not (build / "wisp-node").exists():
        pytest.skip("this build has no wisp-node")
    words = [sys.executable, ROOT / "ports" / "python" / "fleet_demo", build, tmp_path / "fleet"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "round 3 of 3: 3 of 3 devices" in done.stdout and "the model was sent to 3 devices" in done.stdout


class AnotherGrid:
    """A Grid that is not Flower's own: its nodes answer at once, one with an error and one for another node."""

    def __init__(self, answer) -> None:
        self._answer, self._sent = answer, {}

    def get_node_ids(self):
        return [1, 2, 3, 4, 5]

    def push_messages(self, messages):
        for number, message in enumerate(messages, len(self._sent)):
            message.metadata.__dict__["_message_id"] = str(number)
            message.metadata.__dict__["_src_node_id"] = 1
            self._sent[str(number)] = message
            yield str(number) if message.metadata.dst_node_id != 5 else ""

    def pull_messages(self, ids):
        for one in ids:
            message = self._sent[one]
            node = message.metadata.dst_node_id
            if node == 3:
                yield flwr.app.Message(flwr.app.Error(code=1), reply_to=message)
                continue
            record = flwr.app.ConfigRecord(self._answer(message.content["wisp"]))
            reply = flwr.app.Message(flwr.app.RecordDict({"wisp" if node != 2 else "fit": record}), reply_to=message)
            reply.metadata.__dict__["_src_node_id"] = 9 if node == 4 else node
            yield reply


def test_any_grid_serves_by_its_public_calls(make_plan, tmp_path):
    plan = make_plan(devices=5, rounds=1)
    zero = bytes(json.loads(plan.read_text())["num_weights"])
    TaskIdentity.run_id = TaskIdentity.task_id = TaskIdentity.node_id = 1

    def answer(asked):
        known = {"plan": hashlib.sha256(asked["plan"].encode()).hexdigest(), "task": asked["task"]}
        return {**known, "round": asked["round"], "nonce": bytes(16), "update": zero}

    result = PrivateFleet(plan, CAFE, tmp_path / "films", seed=SEED, round_seconds=5).run(AnotherGrid(answer))
    assert result["rounds"][0]["added"] == 1
    assert result["rounds"][0]["absent"] == {"absent": 2, "malformed": 1, "foreign": 1}


def _with_error(node, request, honest):
    objects, metadata = Objects(), request.reply_metadata()
    error = error_pb2.Error(code=3, reason="no")
    node.push(objects, objects.message(metadata, error=error), metadata, error=error)


def _twice(node, request, honest):
    update = honest.update(node, request)
    assert node.answer(request, update) == 3
    assert node.answer(request, bytes(len(update))) == 0


def _stalls(node, request, honest):
    objects, metadata = Objects(), request.reply_metadata()
    content = objects.config({"plan": "", "task": "", "round": 0, "nonce": bytes(16), "update": honest.zero})
    node.push(objects, objects.message(metadata, content), metadata, most=1)


def _garbage(node, request, honest):
    objects, metadata = Objects(), request.reply_metadata()
    body = b"not an object" * 40
    leaf = message_pb2.ObjectTree(object_id=hashlib.sha256(body).hexdigest())
    objects.bytes[leaf.object_id] = body
    node.push(objects, objects.message(metadata, objects.put("RecordDict", [leaf], b"{}")), metadata)


def _bad_record(node, request, honest):
    objects, metadata = Objects(), request.reply_metadata()
    leaf = objects.put("ConfigRecord", [], b"\xff\xff no protobuf")
    node.push(objects, objects.message(metadata, objects.put("RecordDict", [leaf], b"{")), metadata)


def _no_children(node, request, honest):
    objects, metadata = Objects(), request.reply_metadata()
    root = objects.message(metadata, objects.config({"a": 1}))
    node.push(objects, root, metadata, tree=message_pb2.ObjectTree(object_id=root.object_id))


def _wide(node, request, honest):
    objects, metadata = Objects(), request.reply_metadata()
    leaves = [objects.put("ConfigRecord", [], bytes([i])) for i in range(2)]
    node.push(objects, objects.message(metadata, objects.put("RecordDict", leaves, b"{}")), metadata)


def _two_items(node, request, honest):
    objects, metadata = Objects(), request.reply_metadata()
    plan = hashlib.sha256(request.record["plan"].encode()).hexdigest()
    values = {"plan": plan, "task": "train", "round": 0, "nonce": bytes(16), "update": honest.zero, "loss": 0.5}
    node.push(objects, objects.message(metadata, objects.config(values)), metadata)


def _in_anothers_name(node, request, honest):
    """Answers the request of another node, under its own number: the SuperLink refuses it."""
    while honest.seen is None:
        time.sleep(0.1)
    objects, metadata = Objects(), honest.seen.reply_metadata()
    metadata.src_node_id = node.id
    content = objects.config({"plan": "", "task": "train", "round": 0, "nonce": bytes(16), "update": honest.zero})
    node.push(objects, objects.message(metadata, content), metadata)


@contextlib.contextmanager
def confirming_early(node):
    """Confirms a message that it has not pulled, as soon as it is announced."""
    done = threading.Event()

    def work():
        while not done.wait(0.05):
            if found := node.announced():
                node.confirm(found[0])
                return

    thread = threading.Thread(target=work)
    thread.start()
    yield
    done.set()
    thread.join()


LIARS = {
    "wrong size": (lambda node, request, honest: node.answer(request, honest.zero[:-1]), "malformed"),
    "nothing": (lambda node, request, honest: node.answer(request, b""), "malformed"),
    "beyond the bound": (
        lambda node, request, honest: node.answer(request, b"\x7f" * len(honest.zero)),
        "out of bound",
    ),
    "other round": (lambda node, request, honest: node.answer(request, honest.zero, round=1), "malformed"),
    "other plan": (lambda node, request, honest: node.answer(request, honest.zero, plan="00" * 32), "malformed"),
    "wrong kind": (lambda node, request, honest: node.answer(request, honest.zero, round=0.0), "malformed"),
    "error": (_with_error, "absent"),
    "silent": (lambda node, request, honest: None, "absent"),
    "stalls": (_stalls, "late"),
    "garbage": (_garbage, "late"),
    "bad record": (_bad_record, "malformed"),
    "no children": (_no_children, "malformed"),
    "wide": (_wide, "malformed"),
    "one value more": (_two_items, "malformed"),
    "another's name": (_in_anothers_name, "absent"),
}


def test_liars_are_absences_and_nothing_else(superlink, make_plan, guests, tmp_path):
    """The round ends at its deadline, with the sum of the honest nodes, bit for bit."""
    nodes = [Node(superlink) for _ in range(4)]
    liars = {Node(superlink): name for name in LIARS}
    hasty = Node(superlink)
    plan = make_plan(devices=len(nodes) + len(liars) + 1, rounds=1)
    honest = Honest(plan, guests, nodes)

    def serve(node, request):
        if request.record["task"] == "keep":
            return
        if node in liars:
            LIARS[liars[node]][0](node, request, honest)
        elif node is nodes[0]:
            honest.seen = request
            honest.serve(node, request)
        elif node is nodes[1]:
            _twice(node, request, honest)
        else:
            honest.serve(node, request)

    fleet = PrivateFleet(plan, CAFE, tmp_path / "films", seed=SEED, round_seconds=15)
    with superlink.grid() as grid, contextlib.ExitStack() as stack:
        for node in [*nodes, *liars]:
            stack.enter_context(serving(node, serve, every=2))
        stack.enter_context(confirming_early(hasty))
        (line,) = fleet.run(grid)["rounds"]
    expected = collections.Counter(why for _, why in LIARS.values()) + collections.Counter(absent=1)
    assert line["added"] == len(nodes) and line["absent"] == expected
    assert 15 <= line["seconds"] < 20
    assert weights_of(plan, tmp_path / "films", SEED) == honest.simulated(tmp_path / "simulated")


def test_a_superlink_that_restarts_costs_no_round(superlink, make_plan, guests, tmp_path):
    """Flower forgets its nodes and its run. The nodes join again, with other numbers, and a new run takes the rounds
    that are left."""
    plan = make_plan(devices=3, rounds=2)
    for rounds in (1, 2):
        nodes = [Node(superlink) for _ in range(3)]
        honest = Honest(plan, guests, nodes)
        with superlink.grid() as grid, contextlib.ExitStack() as stack:
            for node in nodes:
                stack.enter_context(serving(node, honest.serve))
            result = PrivateFleet(plan, CAFE, tmp_path / "films", seed=SEED).run(grid, rounds=rounds)
        simulated = {"folder": tmp_path / "simulated", "nodes": honest.ids, "rounds": rounds}
        simulate(plan, CAFE, guests, seed=SEED, threads=1, **simulated)
        superlink.stop()
        superlink.start()
    assert [line["added"] for line in result["rounds"]] == [3, 3]
    folders = (tmp_path / "films", tmp_path / "simulated")
    assert len({weights_of(plan, folder, SEED) for folder in folders}) == 1


def test_a_clock_that_is_an_hour_off_does_not_matter(superlink, make_plan, guests, tmp_path):
    plan = make_plan(devices=2, rounds=1)
    nodes = [Node(superlink, clock=3600), Node(superlink, clock=-3600)]
    honest = Honest(plan, guests, nodes)
    with superlink.grid() as grid, contextlib.ExitStack() as stack:
        for node in nodes:
            stack.enter_context(serving(node, honest.serve))
        result = PrivateFleet(plan, CAFE, tmp_path / "films", round_seconds=30).run(grid)
    assert result["rounds"][0]["added"] == 2


_CLIENT = """
import hashlib, os
from flwr.app import ConfigRecord, Message, RecordDict
from flwr.clientapp import ClientApp
from wisp import _core

app = ClientApp()


def answer(message, context):
    told = message.content["wisp"]
    fleet = _core.FleetSimulation(os.environ["PLAN"], os.environ["MODEL"], os.environ["LOG"],
                                  nodes=[1, 2, context.node_id])
    (update,) = fleet.answer(told["task"], told["round"], told["weights"], [context.node_id])
    plan = hashlib.sha256(told["plan"].encode()).hexdigest()
    values = {"plan": plan, "task": told["task"], "round": told["round"], "nonce": os.urandom(16), "update": update}
    return Message(RecordDict({"wisp": ConfigRecord(values)}), reply_to=message)


app.train()(answer)
"""


def test_flowers_own_node_takes_part_beside_ours(make_plan, guests, tmp_path, monkeypatch):
    plan = make_plan(devices=3, rounds=2)
    for name, path in {"PLAN": plan, "MODEL": CAFE, "LOG": guests}.items():
        monkeypatch.setenv(name, str(path))
    superlink = SuperLink(tmp_path / "superlink", client=_CLIENT)
    nodes = [Node(superlink) for _ in range(2)]
    with contextlib.ExitStack() as stack:
        stack.callback(superlink.stop)
        grid = stack.enter_context(superlink.grid())
        with open(tmp_path / "supernode.log", "w") as log:
            words = ["--insecure", "--superlink", f"127.0.0.1:{superlink.port}", "--port", str(free_port())]
            supernode = subprocess.Popen([BIN / "flower-supernode", *words], env=superlink.env, stdout=log, stderr=log)
        stack.callback(supernode.wait)
        stack.callback(supernode.terminate)
        deadline = time.monotonic() + 60
        while len(online := list(grid.get_node_ids())) < 3:
            assert time.monotonic() < deadline, (tmp_path / "supernode.log").read_text()
            time.sleep(0.5)
        (theirs,) = set(online) - {node.id for node in nodes}
        honest = Honest(plan, guests, [*nodes, types.SimpleNamespace(id=theirs)])
        for node in nodes:
            stack.enter_context(serving(node, honest.serve))
        result = PrivateFleet(plan, CAFE, tmp_path / "films", seed=SEED, round_seconds=60).run(grid)
    assert [line["added"] for line in result["rounds"]] == [3, 3], (tmp_path / "supernode.log").read_text()
    assert weights_of(plan, tmp_path / "films", SEED) == honest.simulated(tmp_path / "simulated")


def _certificates(folder: pathlib.Path) -> pathlib.Path:
    folder.mkdir()
    new = "openssl req -newkey rsa:2048 -nodes -days 2"
    for command in (
        f"{new} -x509 -keyout ca.key -out ca.crt -subj /CN=ca",
        f"{new} -keyout server.key -out server.csr -subj /CN=localhost",
        "openssl x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -out server.crt -days 2"
        " -extfile names",
    ):
        (folder / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
        subprocess.run(command.split(), cwd=folder, check=True, capture_output=True)
    return folder


def test_enrolled_keys_over_tls(make_plan, guests, tmp_path):
    plan = make_plan(devices=2, rounds=1)
    superlink = SuperLink(tmp_path / "superlink", tls=_certificates(tmp_path / "tls"))
    keys = [ec.generate_private_key(ec.SECP256R1()) for _ in range(3)]
    try:
        for i, key in enumerate(keys[:2]):
            line = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
            (tmp_path / f"{i}.pub").write_bytes(line + b"\n")
            words = [BIN / "flwr", "supernode", "register", tmp_path / f"{i}.pub", "test"]
            subprocess.run(words, env=superlink.env, check=True, capture_output=True)
        with pytest.raises(RuntimeError, match="412"):
            Node(superlink, key=keys[2])
        nodes = [Node(superlink, key=key) for key in keys[:2]]
        honest = Honest(plan, guests, nodes)
        with superlink.grid() as grid, contextlib.ExitStack() as stack:
            for node in nodes:
                stack.enter_context(serving(node, honest.serve))
            result = PrivateFleet(plan, CAFE, tmp_path / "films", seed=SEED).run(grid)
        assert result["rounds"][0]["added"] == 2
    finally:
        superlink.stop()
