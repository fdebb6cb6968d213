"""Ways of damaging an input: of bytes, of lines, of values, of trees.  The same random numbers do the same damage."""

from __future__ import annotations

import io
import json
from typing import Any

from ruamel.yaml import YAML

HOSTILE: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1,
    2**31,
    2**63,
    2**64,
    -(2**63),
    10**30,
    0.5,
    1e308,
    float("inf"),
    float("nan"),
    "",
    " ",
    "0",
    "-1",
    "NaN",
    "1e999",
    "0 s",
    "1 ns",
    "-5 s",
    "5",
    "10 MBps",
    "1e18 s",
    "9999999 d",
    "0 B",
    "1 B",
    "999999 TiB",
    "0/s",
    "/nonexistent/file",
    "1e12/s",
    "100 %",
    "-3 %",
    "1000000 %",
    "unlimited",
    "hash",
    "none",
    "x" * 5000,
    "../../../../etc/passwd",
    "/dev/zero",
    "a: b: c",
    "\x1b[2J\x1b]0;owned\x07",
    "\u202egnp.exe",
    "\ud83d\ude00",
    "=cmd|' /C calc'!A0",
    "{{7*7}}",
    "%s%n",
    "[1, 2",
    "\x00",
    "\t",
    "é",
    [],
    {},
    [[]],
    [None],
    {"": None},
    {"a": {"b": {"c": []}}},
    [1, "two", None],
    [[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]],
    ["10 s"] * 3,
)
"""Values that mean something else than the one that stood there, or nothing at all."""


def damaged_bytes(content, rng):
    """Some of it flipped, cut, doubled, overwritten or inserted."""
    data = bytearray(content)
    for _ in range(rng.choice([1, 1, 2, 8])):
        at = rng.randrange(len(data) + 1)
        length = rng.choice([1, 1, 4, 64, 1000])
        kind = rng.randrange(6)
        if kind == 0 and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del data[at : at + length]
        elif kind == 2:
            data[at:at] = data[at : at + length]
        elif kind == 3:
            data[at:at] = rng.randbytes(length)
        elif kind == 4:
            del data[at:]
        else:
            data[at : at + length] = bytes([rng.choice(b"\x00\xff\n\t{}[]:,\"'&*!-#%|>@`0")]) * length
    return bytes(data)


def damaged_lines(content, rng):
    """Lines left out, doubled, exchanged, indented, joined, with another value behind the colon or comma."""
    lines = content.split(b"\n")
    for _ in range(rng.choice([1, 1, 2, 5])):
        i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
        kind = rng.randrange(7)
        if kind == 0 and len(lines) > 1:
            del lines[i]
        elif kind == 1:
            lines.insert(j, lines[i])
        elif kind == 2:
            lines[i], lines[j] = lines[j], lines[i]
        elif kind == 3:
            lines[i] = rng.choice([b" ", b"  ", b"\t", b"- "]) + lines[i]
        elif kind == 4:
            lines[i] = lines[i].lstrip()
        else:
            mark = rng.choice([b":", b","])
            head, found, tail = lines[i].partition(mark)
            lines[i] = head + found + b" " + _text(rng.choice(HOSTILE)) + rng.choice([b"", b",", mark + tail])
    return b"\n".join(lines)


def _text(value):
    return (value if isinstance(value, str) else json.dumps(value)).encode("utf-8", "surrogatepass")


def damaged_tree(tree, rng):
    """The same JSON-like tree with some nodes replaced, left out, doubled, renamed, nested or exchanged.  `tree` is changed."""
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        places = list(_places(tree))
        if not places:
            return rng.choice(HOSTILE)
        _damage(*rng.choice(places), places, rng)
    return tree


def _places(tree):
    """(container, key or index) of all nodes."""
    stack = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, dict | list):
            for key in node if isinstance(node, dict) else range(len(node)):
                yield node, key
                stack.append(node[key])


def _damage(parent, key, places, rng):
    """Change one node, or the node and its neighbours."""
    value, kind = parent[key], rng.randrange(7)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind < 2:
        parent[key] = rng.choice(HOSTILE)
    elif kind == 2:
        del parent[key]
    elif kind == 3 and isinstance(parent, list):
        parent[key:key] = [value] * rng.choice([1, 2, 50])
    elif kind == 3:
        parent[f"{key}{rng.choice(['', '2', ' ', 'é'])}x"] = value
    elif kind == 4:
        parent[key] = [value] if rng.random() < 0.5 else {"x": value}
    elif kind == 5 and is_number:  # grows, shrinks or changes its sign
        parent[key] = value * rng.choice([-1, 0, 2, 1000, 10**6, 0.001])
    elif kind == 5 and isinstance(value, str) and " " in value:  # another unit
        parent[key] = value.split(" ")[0] + " " + rng.choice(["ns", "d", "B", "TiB", "%", "MB/s", ""])
    else:
        other, there = rng.choice(places)
        if (other is not parent or there != key) and there in (other if isinstance(other, dict) else range(len(other))):
            parent[key] = json.loads(json.dumps(other[there], default=str))


def damaged_yaml(content, rng):
    """A YAML file whose tree is damaged, written anew; or one with what only YAML has: anchors, tags, several documents."""
    if rng.random() < 0.1:
        return content + rng.choice(_YAML_ONLY)
    tree = YAML(typ="safe").load(content)
    out = io.StringIO()
    writer = YAML(typ="safe")
    writer.default_flow_style = rng.random() < 0.3
    writer.dump(damaged_tree(tree, rng), out)
    return out.getvalue().encode("utf-8", "surrogatepass")


_YAML_ONLY = (
    b"\na: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b, *b]\n",
    b"\n<<: *nobody\n",
    b"\nx: !!python/object/apply:os.system ['true']\n",
    b"\n---\nversion: 1\n",
    b"\n? [a, b]\n: c\n",
    b"\n\xff\xfe",
    b"\n" + b"[" * 3000,
    b"\nx: !!binary aGk=\n",
    b"\nversion: 1\n",
    b"\nx: 2020-01-01\ny: 0x1F\nz: 1_000\n",
    b"\n%YAML 9.9\n",
    b"\n&a a: *a\n",
    b"\nl0: &l0 [z,z,z,z,z,z,z,z]\n"
    + b"".join(b"l%d: &l%d [%s]\n" % (i, i, b",".join([b"*l%d" % (i - 1)] * 8)) for i in range(1, 9)),
)
