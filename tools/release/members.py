"""Lists the members of archives and finds where two of them differ: tar, zip, ar, packed by gzip or xz, also nested."""

import gzip
import io
import lzma
import tarfile
import zipfile


def _tar(data):
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        for entry in archive:
            about = (
                f"kind {entry.type.decode()}, mode {entry.mode:o}, owner {entry.uid}:{entry.gid}, time {entry.mtime}"
            )
            about += f", link to {entry.linkname}" if entry.linkname else ""
            file = archive.extractfile(entry) if entry.isreg() else None
            yield entry.name, about, file.read() if file else b""


def _zip(data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for entry in archive.infolist():
            yield entry.filename, f"mode {entry.external_attr >> 16:o}, time {entry.date_time}", archive.read(entry)


def _ar(data):
    """Reads names as in System V and GNU: those beyond 15 characters lie in a member of their own, '//'."""
    names, at = b"", 8
    while at + 60 <= len(data):
        name, time, owner, group, mode, size = (
            data[at + a : at + b].strip() for a, b in ((0, 16), (16, 28), (28, 34), (34, 40), (40, 48), (48, 58))
        )
        body = data[at + 60 : at + 60 + int(size)]
        at += 60 + int(size) + int(size) % 2
        if name == b"//":
            names = body
        elif name[:1] == b"/" and name[1:].isdigit():
            name = names[int(name[1:]) :].split(b"/\n")[0]
        name = name if name in (b"/", b"//") else name.rstrip(b"/")
        mode, owner, group, time = (field.decode() for field in (mode, owner, group, time))
        yield name.decode(), f"mode {mode}, owner {owner}:{group}, time {time}", body


def members(data):
    """Returns [(name, attributes, bytes)] in the archive's order, or None if the bytes are not an archive."""
    if data[:8] == b"!<arch>\n":
        return list(_ar(data))
    if data[:4] == b"PK\3\4":
        return list(_zip(data))
    if data[:2] == b"\x1f\x8b":
        inner = gzip.decompress(data)
        return members(inner) or [("the unpacked file", "", inner)]
    if data[:6] == b"\xfd7zXZ\0":
        inner = lzma.decompress(data)
        return members(inner) or [("the unpacked file", "", inner)]
    if data[257:262] == b"ustar":
        return list(_tar(data))
    return None


def names_within(data):
    """Names all members, also those of archives in the archive."""
    for name, _, body in members(data) or []:
        yield name
        yield from names_within(body)


def lacking_notices(name, data):
    """Names those of LICENSE and NOTICE that a file of a release lacks. A package of Debian has both in its
    copyright."""
    names = {entry.rsplit("/", 1)[-1].split(".")[0] for entry in names_within(data)}
    return [] if name.endswith(".deb") and "copyright" in names else sorted({"LICENSE", "NOTICE"} - names)


def differences(name, a, b):
    """Returns sentences on the differences between two files called `name`."""
    if a == b:
        return
    in_a, in_b = members(a), members(b)
    if in_a is None or in_b is None:
        first = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
        yield f"{name} differs: {len(a)} and {len(b)} bytes, first at byte {first}"
        return
    found = 0
    by_name = {entry[0]: entry for entry in in_b}
    for entry, about, body in in_a:
        if entry not in by_name:
            yield f"{name}: only the first has {entry}"
            continue
        _, other_about, other = by_name.pop(entry)
        if about != other_about:
            yield f"{name}: {entry} is '{about}' in the first, '{other_about}' in the second"
        for sentence in differences(f"{name}: {entry}", body, other):
            yield sentence
        found += about != other_about or body != other
    for entry in by_name:
        yield f"{name}: only the second has {entry}"
    if not found and not by_name and len(in_a) == len(in_b):
        order = next((x[0] for x, y in zip(in_a, in_b) if x[0] != y[0]), None)
        yield (
            f"{name}: the members are equal, their order is not, from {order} on"
            if order
            else f"{name}: the members are equal, packed otherwise"
        )
