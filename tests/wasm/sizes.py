#!/usr/bin/env python3
"""Compares the size of a page's files, compressed as by servers (gzip -9), with its bounds.

sizes.py PACKAGE_FOLDER
"""

import gzip
import sys
from pathlib import Path

# Name of a load, its files, and the most bytes.
MOST = (
    (
        "inference",
        ("wisp-runtime.wasm", "wisp-runtime.mjs", "library.js", "layout-runtime.js", "model.js", "runtime.js"),
        121_000,
    ),
    (
        "inference without vectors",
        (
            *("wisp-runtime-plain.wasm", "wisp-runtime-plain.mjs", "library.js", "layout-runtime.js", "model.js"),
            "runtime.js",
        ),
        143_000,
    ),
    ("texts", ("wisp-text.wasm", "wisp-text.mjs", "library.js", "layout-text.js", "text.js"), 256_000),
    (
        "everything",
        (
            *("wisp.wasm", "wisp.mjs", "library.js", "layout.js", "model.js", "store.js", "fleet.js", "worker.js"),
            *("device.js", "draws.js", "names.js"),
        ),
        815_000,
    ),
)

package = Path(sys.argv[1])
failed = False
for what, files, most in MOST:
    sizes = {name: len(gzip.compress((package / name).read_bytes(), 9)) for name in files}
    print(
        f"{what}: {sum(sizes.values())} bytes compressed, allowed are {most}"
        f" ({', '.join(f'{name} {size}' for name, size in sizes.items())})"
    )
    failed |= sum(sizes.values()) > most
sys.exit("a package is larger than allowed" if failed else 0)
