"""Flower, which no other file here knows. Checked with flwr 1.42.

A run that is stopped ends with Flower's RunNotRunningException, which no handler of Exception catches.

FlowerLink makes the calls of Flower's HttpGrid itself, because three of its ways end a run or a round at the will of
one device: a reply that does not decode raises and loses all replies of the call, a node that stops half way through
its upload blocks it for minutes, and a node that confirms early makes push_messages raise.
"""

from __future__ import annotations

import collections
import importlib
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from .._errors import Unsupported
from ._link import Ask, Link

NAME = "wisp"  # of the one record in a message
_TYPES = {"train": "train", "evaluate": "evaluate", "keep": "query"}  # message types that Flower knows
# Nodes that are busy at once with downloads and uploads: the SuperLink serves about 100 calls a second.
_GROUP, _MOST_BUSY, _BUSY_SECONDS = 50, 200, 60
_THREADS = 8
# A message outlives its round by so much, so that the round, not Flower, ends it.
_GRACE_SECONDS = 10
_OTHER_BYTES = 1024  # of an answer, beside the update


def flower(module: str) -> Any:
    """A module of Flower."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise Unsupported(f"Flower is missing ({error.name}): pip install 'wisp[fleet]'") from None


def link_to(grid: Any) -> Link:
    http = isinstance(grid, flower("flwr.superlink.grid").HttpGrid)
    return FlowerLink(grid) if http else GridLink(grid)


def server_app(main: Any) -> Any:
    """A ServerApp that calls main(grid)."""
    app = flower("flwr.serverapp").ServerApp()

    def run(grid: Any, context: Any) -> None:
        main(grid)

    app.main()(run)
    return app


def _message(ask: Ask, content: Any, node: int, ttl: float) -> Any:
    return flower("flwr.app").Message(
        content, dst_node_id=node, message_type=_TYPES[ask.task], ttl=ttl, group_id=str(ask.round)
    )


def _content(ask: Ask) -> Any:
    app = flower("flwr.app")
    return app.RecordDict({NAME: app.ConfigRecord(ask.record())})


class GridLink:
    """Any Grid, by its public calls: for Flower's own simulations, whose nodes the caller trusts."""

    tick, whole = 0.05, False

    def __init__(self, grid: Any) -> None:
        self._grid = grid
        self._asked: dict[str, int] = {}
        self.absences: collections.Counter[str] = collections.Counter()

    def nodes(self) -> list[int]:
        return list(self._grid.get_node_ids())

    def begin(self, ask: Ask) -> None:
        self._ask, self._content, self._asked = ask, _content(ask), {}
        self.absences.clear()

    def push(self, nodes: list[int]) -> None:
        ttl = self._ask.seconds + _GRACE_SECONDS
        for node, sent in zip(
            nodes, self._grid.push_messages([_message(self._ask, self._content, node, ttl) for node in nodes])
        ):
            if sent:
                self._asked[sent] = node
            else:
                self.absences["absent"] += 1

    def collect(self) -> list[tuple[int, bytes]]:
        answers = []
        for reply in self._grid.pull_messages(list(self._asked)) if self._asked else ():
            node = self._asked.pop(reply.metadata.reply_to_message_id, None)
            if node is None or not self._ask.answer_bytes:
                continue
            if reply.has_error() or reply.metadata.src_node_id != node:
                self.absences["absent" if reply.has_error() else "foreign"] += 1
                continue
            record = reply.content.config_records.get(NAME) if len(reply.content) == 1 else None
            update = self._ask.update_of(dict(record)) if record else None
            if update is None:
                self.absences["malformed"] += 1
            else:
                answers.append((node, update))
        return answers

    def waiting(self) -> int:
        return len(self._asked)

    def forget(self) -> None:
        self.absences["absent"] += len(self._asked) if self._ask.answer_bytes else 0
        self._asked = {}


def _chain(tree: Any) -> list[str]:
    """The ids of a tree without branches from its root; longer than three if there are more than three."""
    ids = [tree.object_id]
    while len(tree.children) == 1 and len(ids) < 4:
        tree = tree.children[0]
        ids.append(tree.object_id)
    return ids + [""] * (4 * bool(tree.children))


class FlowerLink:
    """The SuperLink that an HttpGrid is connected to.

    An answer is three objects, each the only child of the one before: Message, RecordDict and ConfigRecord. The node
    uploads them from the leaf to the root, so the root is there last. What the Message and the RecordDict say is not
    read: the SuperLink checks the metadata beside them, and the leaf has everything else.
    """

    tick, whole = 1.0, False

    def __init__(self, grid: Any) -> None:
        self._grid, self._calls = grid, grid._runtime_client
        self._runtime, self._messages = flower("flwr.proto.runtime_pb2"), flower("flwr.proto.message_pb2")
        self._records = flower("flwr.proto.recorddict_pb2")
        self._pool = ThreadPoolExecutor(_THREADS)
        self.absences: collections.Counter[str] = collections.Counter()
        self._queue: collections.deque[int] = collections.deque()  # nodes to ask
        self._asked: dict[str, tuple[int, float]] = {}  # a message: its node, and when it was sent
        self._half: dict[str, tuple[int, str]] = {}  # an answer that may still be uploading: its node and leaf
        self._is_first = True

    def nodes(self) -> list[int]:
        return list(self._grid.get_node_ids())

    def begin(self, ask: Ask) -> None:
        self._ask, self._content = ask, _content(ask)
        self._ends = time.monotonic() + ask.seconds
        self._is_first = True
        self.absences.clear()

    def push(self, nodes: list[int]) -> None:
        self._queue.extend(nodes)

    def waiting(self) -> int:
        return len(self._queue) + len(self._asked) + len(self._half)

    def collect(self) -> list[tuple[int, bytes]]:
        self._send()
        if not self._ask.answer_bytes:
            self._look_who_took_it()
            return []
        for reply, tree in self._pull(list(self._asked)):
            node, _ = self._asked.pop(reply.metadata.reply_to_message_id, (None, 0))
            if node is None:
                continue
            answer, chain = reply.metadata.message_id, _chain(tree)
            if reply.HasField("error"):  # of the node, or of Flower for a node that is gone
                self._drop(answer, "absent")
            elif reply.metadata.src_node_id != node:
                self._drop(answer, "foreign")
            elif len(chain) != 3 or chain[0] != answer:
                self._drop(answer, "malformed")
            else:
                self._half[answer] = (node, chain[2])
        answers = []
        for answer, found in zip(list(self._half), self._pool.map(self._fetch, list(self._half.items()))):
            if found is None:  # still uploading
                continue
            node, _ = self._half.pop(answer)
            if found:
                answers.append((node, found))
            else:
                self.absences["malformed"] += 1
        return answers

    def forget(self) -> None:
        if self._ask.answer_bytes:
            self.absences["late"] += len(self._half)
            self.absences["absent"] += len(self._asked) + len(self._queue)
        # A message that nobody confirms keeps the round's weights in the SuperLink until the run ends.
        list(self._pool.map(self._confirm, [*self._half, *self._asked]))
        self._queue.clear()
        self._asked, self._half = {}, {}

    def _send(self) -> None:
        """Sends to nodes in the queue. The first message goes alone, because it carries the weights for all. A node
        that was asked a minute ago and did not answer sleeps, and costs the SuperLink nothing."""
        now = time.monotonic()
        busy = sum(at > now - _BUSY_SECONDS for _, at in self._asked.values())
        while self._queue and busy < _MOST_BUSY:
            group = [self._queue.popleft() for _ in range(1 if self._is_first else min(_GROUP, len(self._queue)))]
            self._is_first = False
            self._send_group(group)
            busy += len(group)

    def _send_group(self, nodes: list[int]) -> None:
        objects = flower("flwr.supercore.inflatable.inflatable_object")
        to_proto = flower("flwr.common.serde").message_to_proto
        without_content = flower("flwr.app.message.message").remove_content_from_message
        ttl = self._ends - time.monotonic() + _GRACE_SECONDS
        everything: dict[str, Any] = {}
        request = self._runtime.PushAppMessagesRequest()
        with objects.no_object_id_recompute():
            for node in nodes:
                message = _message(self._ask, self._content, node, ttl)
                message.metadata.__dict__["_message_id"] = message.object_id
                request.messages_list.append(to_proto(without_content(message)))
                request.message_object_trees.append(objects.get_object_tree(message))
                everything.update(objects.get_all_nested_objects(message))
            sent = self._calls.PushMessages(request)
            parts = [(name, everything[name].deflate()) for name in set(sent.objects_to_push)]

        # A node that confirmed early has made its message vanish: a part that is not stored is its absence.
        def upload(part: tuple[str, bytes]) -> None:
            self._calls.PushObject(
                self._messages.PushObjectRequest(
                    node=self._grid.node,
                    run_id=self._grid.run.run_id,
                    object_id=part[0],
                    object_content=part[1],
                    session_id=sent.session_id,
                )
            )

        list(self._pool.map(upload, parts))
        for node, message_id in zip(nodes, sent.message_ids):
            if message_id:
                self._asked[message_id] = (node, time.monotonic())
            else:
                self.absences["absent"] += 1

    def _pull(self, messages: list[str]) -> Iterator[tuple[Any, Any]]:
        """Announced answers and their trees. If one of them cannot be told of, each message is asked about alone."""
        if not messages:
            return
        try:
            found = self._calls.PullMessages(self._runtime.PullAppMessagesRequest(message_ids=messages))
        except Exception:
            if len(messages) > 1:
                for message in messages:
                    yield from self._pull([message])
            else:
                del self._asked[messages[0]]
                self.absences["malformed"] += 1
            return
        yield from zip(found.messages_list, found.message_object_trees)

    def _object(self, name: str) -> Any:
        return self._calls.PullObject(
            self._messages.PullObjectRequest(node=self._grid.node, run_id=self._grid.run.run_id, object_id=name)
        )

    def _fetch(self, half: tuple[str, tuple[int, str]]) -> bytes | None:
        """The update of an answer; empty: it is malformed; None: it is not all there yet. Runs in several threads."""
        answer, (_, leaf) = half
        update = b""
        try:
            for name in (answer, leaf):
                part = self._object(name)
                if part.object_found and not part.object_available:
                    return None
                if not part.object_found:
                    break
            else:
                update = self._read(part.object_content) or b""
        except Exception:
            update = b""
        self._confirm(answer)
        return update

    def _read(self, leaf: bytes) -> bytes | None:
        head = leaf[:_OTHER_BYTES].partition(b"\0")[0]
        size = len(leaf) - len(head) - 1
        if head != b"ConfigRecord  %d" % size or size > self._ask.answer_bytes + _OTHER_BYTES:
            return None
        record = self._records.ConfigRecord.FromString(leaf[len(head) + 1 :])
        answer = {item.key: getattr(item.value, item.value.WhichOneof("value")) for item in record.items}
        return self._ask.update_of(answer) if len(answer) == len(record.items) else None

    def _look_who_took_it(self) -> None:
        """Some of the messages without an answer: one that its node has confirmed is gone."""
        for message in list(self._asked)[:_GROUP]:
            asked = self._asked.pop(message)
            if self._object(message).object_found:
                self._asked[message] = asked

    def _drop(self, answer: str, why: str) -> None:
        self.absences[why] += 1
        self._confirm(answer)

    def _confirm(self, message: str) -> None:
        """Frees a message in the SuperLink."""
        try:
            self._calls.ConfirmMessageReceived(
                self._messages.ConfirmMessageReceivedRequest(
                    node=self._grid.node, run_id=self._grid.run.run_id, message_object_id=message
                )
            )
        except Exception:
            return
