"""Random changes of inputs that know the form of what they change."""

from __future__ import annotations

import io
import json
import random
import re
import struct
import warnings
import zipfile
import zlib
from typing import Any

Random = random.Random

TEXTS = (
    *("", "a\nb", "a\0", "\0", "\x1b[2J", "=1+1|cmd", "\u2028", "\ud800", "n" * 300),
    *("é" * 257, "../a", "/dev/zero", "nan", "inf", "-1", "1.9", "1e999", "9" * 5000),
    *("0x10", "1_0", "٣", "true", "client", " ", "\ufeff", '"', ",", "\r"),
)
NUMBERS = (
    *(0, 1, -1, 2, 61, 62, 255, 256, 784, 2**31 - 1, 2**31, -(2**31), 2**32, 2**53),
    *(2**63 - 1, 2**63, -(2**63), 2**64, 2**64 + 5, 10**9, 10**12, 10**30, 10**400),
    *(0.5, 1.9, -0.0, 1e-320, 1e308, float("inf"), float("-inf"), float("nan")),
)


def value(source: Random, depth: int = 2) -> Any:
    """A value that JSON can write and few readers expect."""
    kind = source.randrange(8)
    if kind < 2:
        return source.choice(TEXTS)
    if kind < 5:
        return source.choice(NUMBERS)
    if kind == 5:
        return source.choice((None, True, False, [], {}, [[]], "n" * 100_000))
    if depth == 0:
        return []
    values = [value(source, depth - 1) for _ in range(source.randrange(4))]
    return values if kind == 6 else {str(k): v for k, v in enumerate(values)}


def flip(source: Random, data: bytes) -> bytes:
    """A few changes of bytes, of whatever form."""
    made = bytearray(data)
    for _ in range(source.choice((1, 1, 1, 2, 4, 16))):
        at = source.randrange(len(made) + 1)
        size = source.choice((1, 1, 2, 4, 8, 64, 1024))
        kind = source.randrange(8)
        if kind == 0 and at < len(made):
            made[at] ^= 1 << source.randrange(8)
        elif kind == 1:
            made[at : at + 1] = bytes([source.choice((0, 1, 127, 128, 255))])
        elif kind == 2:
            del made[at : at + size]
        elif kind == 3:
            made[at:at] = made[at : at + size]
        elif kind == 4:
            made[at:at] = source.randbytes(size)
        elif kind == 5:
            width = source.choice("BHIQ")
            number = source.choice((0, 1, 2**7, 2**15, 2**31 - 1, 2**32 - 1, 2**64 - 1))
            number &= 256 ** struct.calcsize(width) - 1
            packed = struct.pack(source.choice("<>") + width, number)
            made[at : at + len(packed)] = packed
        elif kind == 6:
            del made[at:]
        else:
            other = source.randrange(len(made) + 1)
            made[at : at + size] = made[other : other + size]
    return bytes(made)


def _paths(document: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path]
    if isinstance(document, dict):
        for key, inner in document.items():
            found += _paths(inner, (*path, key))
    elif isinstance(document, list):
        for place, inner in enumerate(document[:40]):
            found += _paths(inner, (*path, place))
    return found


def _edit(source: Random, document: Any) -> Any:
    path = source.choice(_paths(document))
    while source.randrange(3) and len(path) > 3:  # Most places are deep inside.
        path = source.choice(_paths(document))
    if not path:
        return value(source)
    holder = document
    for key in path[:-1]:
        holder = holder[key]
    key, kind = path[-1], source.randrange(5)
    if kind == 0:
        del holder[key]
    elif kind == 1 and isinstance(holder, list):
        holder.insert(key, holder[source.randrange(len(holder))])
    elif kind == 1:
        text = source.choice(TEXTS)
        holder[text] = holder.pop(key)
    else:
        holder[key] = value(source)
    return document


def edit_json(source: Random, data: bytes) -> bytes:
    """Changes of a JSON document, and of the text it is written as."""
    document = json.loads(data)
    for _ in range(source.choice((1, 1, 2, 5))):
        document = _edit(source, document)
    try:
        text = json.dumps(document, ensure_ascii=source.random() < 0.8)
        made = text.encode(errors="surrogatepass")
    except (ValueError, TypeError):
        return flip(source, data)
    kind = source.randrange(12)
    if kind == 0:
        made = flip(source, made)
    elif kind == 1:  # A key twice.
        at = made.find(b'"')
        made = made[:1] + made[at:-1] + b", " + made[1:] if at > 0 else made
    elif kind == 2:
        at = source.randrange(len(made) + 1)
        deep = source.choice((b"[", b'{"a":', b"9", b"1e", b'"', b" ")) * 100_000
        made = made[:at] + deep + made[at:]
    return made


def edit_lines(source: Random, data: bytes, separator: bytes = b",") -> bytes:
    """Changes of lines, and of their fields."""
    lines = data.split(b"\n")
    for _ in range(source.choice((1, 1, 2, 4))):
        at = source.randrange(len(lines))
        kind = source.randrange(7)
        if kind == 0 and len(lines) > 1:
            del lines[at]
        elif kind == 1:
            lines.insert(at, source.choice(lines))
        elif kind == 2:
            source.shuffle(lines)
        elif kind == 3:
            lines[at] = flip(source, lines[at])
        else:
            fields = lines[at].split(separator)
            place = source.randrange(len(fields))
            word = source.choice(TEXTS).encode(errors="surrogatepass")
            fields[place] = source.choice((word, word, source.choice(fields)))
            if kind == 4:
                fields.insert(place, source.choice(fields))
            lines[at] = separator.join(fields)
    return b"\n".join(lines)


def edit_npy(source: Random, data: bytes) -> bytes:
    """Changes of what an array's file says of it, its length kept right or not."""
    size = int.from_bytes(data[8:10], "little")
    header, rest = data[10 : 10 + size], data[10 + size :]
    shapes = ("()", "(1,)", "(-1,)", "(2**30,)", "(1073741824, 64)", "(0, 9)", "(3.5,)")
    types = ("|u1", "<f8", "|O", "<U9", "|V9", "<i4", "?", "<M8[s]", "nothing", "|S0")
    for pattern, words in (
        (rb"\(.*?\)", shapes),
        (rb"(?<=descr': ').*?(?=')", types),
        (b"False", ("True", "None", "0", "[[")),
    ):
        if source.randrange(4) == 0:
            header = re.sub(pattern, source.choice(words).encode(), header)
    if source.randrange(4) == 0:
        header = flip(source, header)
    if source.randrange(4) == 0:
        rest = flip(source, rest)
    length = len(header) if source.random() < 0.9 else source.randrange(65536)
    version = source.choice((b"\x01\x00",) * 9 + (b"\x02\x00", b"\x03\x00"))
    return data[:6] + version + (length & 65535).to_bytes(2, "little") + header + rest


def edit_zip(source: Random, data: bytes) -> bytes:
    """Changes of an archive's members, of how they are packed, and of its tables."""
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        members = [(name, file.read(name)) for name in file.namelist()]
    at = source.randrange(len(members))
    name, content = members[at]
    kind = source.randrange(8)
    if kind < 4:
        members[at] = name, edit_npy(source, content)
    elif kind == 4:
        del members[at]
    elif kind == 5:
        members.append((source.choice(("more.npy", name, "a/../b.npy")), content))
    elif kind == 6:
        members[at] = name, source.choice(members)[1]
    methods = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) * 4
    method = source.choice((*methods, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA))
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", method) as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # A name that is there twice.
        for name, content in members:
            # A name alone would be given the time of day.
            file.writestr(zipfile.ZipInfo(name), content, method)
    made = packed.getvalue()
    return flip(source, made) if kind == 7 or source.random() < 0.2 else made


def edit_png(source: Random, data: bytes) -> bytes:
    """Changes of a PNG's chunks, their checksums made right again."""
    chunks, at = [], 8
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        chunks.append((data[at + 4 : at + 8], data[at + 8 : at + 8 + size]))
        at += size + 12
    place, what = source.randrange(len(chunks)), source.randrange(4)
    kind, content = chunks[place]
    if what == 0 and kind == b"IHDR":
        sides = (0, 1, 32, 5000, 13_000, 65_536, 2**31 - 1)
        size = struct.pack(">II", source.choice(sides), source.choice(sides))
        chunks[place] = kind, size + content[8:]
    elif what == 1:
        more = source.choice((b"zTXt", b"iCCP", b"tRNS", b"PLTE", b"acTL", b"eXIf"))
        chunks.insert(place, (more, b"a\0\0" + zlib.compress(bytes(1 << 24))))
    elif what == 2:
        chunks[place] = source.choice(chunks)
    else:
        chunks[place] = kind, flip(source, content)
    made = data[:8]
    for kind, content in chunks:
        checksum = struct.pack(">I", zlib.crc32(kind + content))
        made += struct.pack(">I", len(content)) + kind + content + checksum
    return made


def edit_jpeg(source: Random, data: bytes) -> bytes:
    """Changes of a JPEG's segments: its size, its tables, how often it is scanned."""
    kind = source.randrange(4)
    mark = max(data.find(b"\xff\xc0"), data.find(b"\xff\xc2"))
    if kind == 0 and mark > 0:
        sides = (0, 1, 5000, 13_000, 65_535)
        size = struct.pack(">HH", source.choice(sides), source.choice(sides))
        return data[: mark + 5] + size + data[mark + 9 :]
    if kind == 1:
        start, end = data.find(b"\xff\xda"), data.rfind(b"\xff\xd9")
        return data[:start] + data[start:end] * source.choice((2, 50)) + data[end:]
    return flip(source, data)
