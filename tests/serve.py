#!/usr/bin/env python3
"""What ports/wasm/demo/serve answers to a page, to other sites and to those who mean harm.

    tests/serve.py
"""
import contextlib
import http.client
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
failures = 0


def expect(what, got, wanted):
    global failures
    if got != wanted:
        failures += 1
        print(f"{what}: {got!r}, expected {wanted!r}")


def status(port, path, host=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    with contextlib.closing(connection):
        connection.putrequest("GET", path, skip_host=True)
        if host is not False:
            connection.putheader("Host", host or f"localhost:{port}")
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, answer.read()


def main():
    with tempfile.TemporaryDirectory() as work:
        outside, folder = pathlib.Path(work, "outside"), pathlib.Path(work, "served")
        for place in (outside, folder, folder / "inner"):
            place.mkdir()
        (outside / "secret").write_text("secret")
        (folder / "page.html").write_text("page")
        os.symlink(outside / "secret", folder / "link")
        os.symlink(outside, folder / "links")
        os.symlink(folder / "page.html", folder / "inner" / "own")
        server = subprocess.Popen([ROOT / "ports/wasm/demo/serve", folder, "0"], stdout=subprocess.PIPE, text=True)
        try:
            port = int(server.stdout.readline().strip().rsplit(":", 1)[1].rstrip("/"))
            expect("a page", status(port, "/page.html"), (200, b"page"))
            expect("by address", status(port, "/page.html", f"127.0.0.1:{port}"), (200, b"page"))
            expect("a link that stays inside", status(port, "/inner/own"), (200, b"page"))
            for path in ("/link", "/links/secret", "/links/", "/%00", "/page.html%00", "/../outside/secret",
                         "/%2e%2e/outside/secret", "/none"):
                expect(path, status(port, path)[0], 404)
            for host in (f"evil.example:{port}", "localhost", "localhost:1", False):
                expect(f"Host {host}", status(port, "/page.html", host)[0], 421)
            # Connections that say nothing are ended, so that others get their turn.
            began = time.monotonic()
            silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(40)]
            connection = http.client.HTTPConnection("localhost", port, timeout=60)
            connection.request("GET", "/page.html")
            expect("beside silent connections", connection.getresponse().read(), b"page")
            threads = len(os.listdir(f"/proc/{server.pid}/task"))
            expect(f"threads ({threads}) are bounded", threads <= 34, True)
            for one in silent:
                one.close()
            print(f"served after {time.monotonic() - began:.1f} s beside 40 silent connections")
        finally:
            server.terminate()
            server.wait()
        for arguments in ([folder, "many"], [folder, "70000"], [pathlib.Path(work, "none")]):
            run = subprocess.run([ROOT / "ports/wasm/demo/serve", *arguments], capture_output=True, text=True,
                                 timeout=60)
            expect(f"{arguments[1:]}", (run.returncode, run.stderr.startswith("usage: ")), (1, True))
    return 1 if failures else 0


sys.exit(main())
