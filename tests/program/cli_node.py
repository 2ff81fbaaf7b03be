"""A node of a fleet against servers that refuse everything: each refusal is a sentence, nothing is charged, and nothing
secret leaves. tests/unit/fleet has its rounds."""

import contextlib
import http.server
import os
import shutil
import signal
import socket
import sqlite3
import ssl
import stat
import subprocess
import threading
import time

import pytest
from program import build, edit, exists, read, run, running, says, try_run, wait_for, write

pytestmark = [
    pytest.mark.usefixtures("cafe"),
    pytest.mark.skipif(not (build / "wisp-node").exists(), reason="wisp-node is not built: libcurl is missing"),
]

node = "wisp node --policy policy.json --data log.db --model base.wisp --ledger fleet.ledger"


@contextlib.contextmanager
def server(answer, certificate=None):
    """Answers every post by `answer(path)`: status, headers, body. Yields its port, and what was posted."""
    posts = []

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"]))
            posts.append((self.path, dict(self.headers), body))
            status, headers, body = answer(self.path)
            self.send_response(status)
            for name, value in {"content-length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            with contextlib.suppress(ConnectionError):
                self.wfile.write(body)

        def log_message(self, *_):
            pass

    http_server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        http_server.socket = context.wrap_socket(http_server.socket, server_side=True)
    threading.Thread(target=http_server.serve_forever, daemon=True).start()
    try:
        yield http_server.server_port, posts
    finally:
        http_server.shutdown()
        http_server.server_close()


def policy(port, scheme="http"):
    edit("plan_policy.json", "policy.json", "https://fleet.example.org", f"{scheme}://127.0.0.1:{port}")


def refuses(status, body=b"", headers=None):
    return lambda path: (status, headers or {}, body)


def charges():
    with contextlib.closing(sqlite3.connect("fleet.ledger")) as ledger:
        return ledger.execute("SELECT count(*) FROM entries").fetchone()[0]


def test_files():
    run("wisp fleet plan --devices 100000 --rounds 100 --epsilon 3 --model base.wisp --out plan.json"
        " --policy plan_policy.json --server https://fleet.example.org")


def test_every_refusal_is_a_sentence():
    for status, body, code, sentence in (
            (401, b'{"detail":"Invalid SuperNode authentication"}', 2, "with status 401, Invalid SuperNode"),
            (500, b'{"detail":"Internal server error."}', 2, "with status 500"),
            (400, b'{"code":1003,"detail":"a\\u001b[2Jb"}', 2, "code 1003, a[?]\\[2Jb"),
            (403, b'{"code":2007}', 130, "stopped before it was done"),
            (404, b"<html>", 2, "with status 404"),
            (412, b'{"code":2004}', 3, "its key is not enrolled, or its node still counts as online"),
            (503, b"busy", 3, "with status 503"),
            (200, b"<html>", 3, "activate-node"),
            (200, b"x" * 100000, 3, "the answer is too large")):
        with server(refuses(status, body)) as (port, posts):
            policy(port)
            run(f"{node} --once", code, sentence)
            assert posts
    assert charges() == 0


def test_a_policy_that_protects_records_needs_their_ledger():
    with server(refuses(401)) as (port, posts):
        policy(port)
        run(f"{node} --once --records-ledger records.ledger --dataset guests", 2, "the policy protects none")
        run(f"{node} --once --records-ledger records.ledger", 2, "--dataset")
        edit("policy.json", "policy.json", '"methods": "gradient"', '"methods": "local"')
        for field, value in {"records_epsilon": "4", "records_delta": "1e-5", "records_public": "50",
                             "records_batch": "10", "local_steps": "4"}.items():
            edit("policy.json", "policy.json", f'"{field}": 0', f'"{field}": {value}')
        run(f"{node} --once", 2, "their ledger is missing")
        assert not posts
        fresh = node.replace("fleet.ledger", "kiosk.ledger")
        run(f"{fresh} --once --records-ledger kiosk.ledger --dataset guests", 2, "kiosk.ledger")
        run(f"{fresh} --once --records-ledger records.ledger --dataset guests", 2, "401")
        assert posts and not exists("records.ledger")


def test_a_log_that_is_not_there_is_an_error_at_the_start():
    with server(refuses(401)) as (port, posts):
        policy(port)
        run(node.replace("log.db", "none.db") + " --once", 3, "--data none.db: does not exist")
    assert not posts


def test_it_sends_a_signature_and_no_more():
    with server(refuses(401)) as (port, posts):
        policy(port)
        run(f"{node} --once", 2, "401")
    path, headers, body = posts[0]
    names = {name.lower() for name in headers}
    assert path == "/v1/fleet/activate-node" and len(body) < 300
    assert names == {"host", "content-type", "content-length", "flwr-public-key", "flwr-timestamp", "flwr-signature"}


def test_the_key_is_made_once_for_its_owner_alone():
    key = read("fleet.ledger.pem")
    assert stat.S_IMODE(os.stat("fleet.ledger.pem").st_mode) == 0o600 and "BEGIN PRIVATE KEY" in key
    with server(refuses(401)) as (port, _):
        policy(port)
        run(f"{node} --once", 2, "401")
        assert read("fleet.ledger.pem") == key
        os.chmod("fleet.ledger.pem", 0o640)
        run(f"{node} --once", 3, "others than its owner can read")
        os.chmod("fleet.ledger.pem", 0o600)
        write("other.pem", "no key\n")
        os.chmod("other.pem", 0o600)
        run(f"{node} --once --key other.pem", 3, "is no private key on P-256")
        run(f"{node} --once --key missing/other.pem", 3, "could not be written: No such file")


def test_it_follows_no_redirection():
    with server(refuses(200)) as (other, stolen), \
            server(refuses(307, headers={"location": f"http://127.0.0.1:{other}/"})) as (port, posts):
        policy(port)
        run(f"{node} --once", 2, "with status 307")
        assert len(posts) == 1 and not stolen


def test_a_certificate_that_nobody_trusts_is_final():
    if not shutil.which("openssl"):
        pytest.skip("openssl is missing")
    subprocess.run("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout tls.key -out tls.crt"
                   " -days 2 -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1".split(), check=True,
                   stderr=subprocess.DEVNULL)
    with server(refuses(401), ("tls.crt", "tls.key")) as (port, posts):
        policy(port, "https")
        run(f"{node} --seconds 60", 2, "certificate")
        assert not posts
        run(f"{node} --once --ca tls.crt", 2, "with status 401")
        assert posts
        run(f"{node} --once --ca log.db", 2, "certificate")


def test_it_tries_again_later_and_ends_at_a_signal():
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    policy(port)
    run(f"{node} --once", 3, "cannot be reached")
    with running(node) as process:
        assert wait_for("fleet.ledger.lock")
        run(f"{node} --once", 3, "another node of a fleet charges it")
        end = time.monotonic() + 20
        while not says("the next attempt is in", read("beside.err")) and time.monotonic() < end:
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 0
    assert says("cannot be reached", read("beside.err")) and says("the next attempt is in", read("beside.err"))
    assert not exists("fleet.ledger.lock")


def test_wrong_options_are_refused_before_anything():
    with server(refuses(401)) as (port, posts):
        policy(port)
        run(f"{node} --superlink http://127.0.0.1:1", 2, "--superlink is 'http://127.0.0.1:1', allowed is the server")
        run(f"{node} --once --seconds 5", 2, "--once")
        run(f"{node} --ask-seconds 0.5", 2, "--ask-seconds is 0.5, allowed")
        run(f"{node} --seconds -1", 2, "--seconds is -1, allowed")
        run(f"{node} --unit week", 2, "week")
        run(f"{node} --unit session", 2, "--session-gap")
        edit("policy.json", "bad.json", '"cohort": 1000', '"cohort": 0')
        run(node.replace("policy.json", "bad.json"), 3, 'bad.json: "cohort" is 0')
        run(node.replace("policy.json", "missing.json"), 3, "missing.json")
        run(node.replace("base.wisp", "missing.wisp") + " --once", 3, "missing.wisp")
        run(f"{node} --once --output log.db", 2, "output_path")
        assert not posts
    assert try_run(f"{build}/wisp-node --policy").code == 2
    assert try_run(f"{build}/wisp-node").code == 2
    assert charges() == 0
