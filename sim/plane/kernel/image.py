"""Machine code as one piece of memory: a linker's work is done when it is compiled, and loading is a copy.

LLVM's own loader does the same and takes 50 MB of each process.  Here is what the kernel's object file needs of it: sections that are only
read, and absolute addresses within themselves.  An object file that needs anything else has no image, and is left to LLVM.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

__all__ = ["image_of", "is_image", "loaded"]

MAGIC = b"ckptsim image 1\n"
_HEAD = struct.Struct("<16sqq")  # MAGIC, the place of the entry, the number of places that hold addresses; these follow, then the code
_PLACE = struct.Struct("<q")

# The parts of an ELF file, and the numbers in it that count here (System V ABI, AMD64 supplement).
_FILE = struct.Struct("<4sBB10xHHIQQQIHHHHHH")
_ELF, _BITS_64, _LITTLE, _X86_64 = b"\x7fELF", 2, 1, 62
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")
_SYMBOLS, _RELOCATIONS, _NO_BITS, _UNWINDING = 2, 4, 8, 0x70000001  # types of sections
_WRITABLE, _IN_MEMORY = 1, 2  # flags of sections
_ABSOLUTE_64 = 1  # type of relocations


class _Section(NamedTuple):
    name: int
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    multiple: int  # of which its address is one
    entry_size: int


_SECTION = struct.Struct("<IIQQQQIIQQ")


class _Symbol(NamedTuple):
    name: str
    section: int
    value: int


def image_of(code: bytes, entry: str) -> bytes | None:
    """The image of an object file; `entry`: the function that is called.  None: it needs LLVM's loader, or this system does."""
    if sys.platform != "linux":
        return None
    sections = _sections(code)
    begins, size = _laid_out(sections)
    symbols = next(([*_symbols(code, sections, row)] for row in sections if row.type == _SYMBOLS), [])
    found = next((begins[row.section] + row.value for row in symbols if row.name == entry and row.section in begins), None)
    if found is None:
        return None
    memory = bytearray(size)
    for number, begin in begins.items():
        row = sections[number]
        memory[begin : begin + row.size] = code[row.offset : row.offset + row.size]
    places = []
    for row in sections:
        if row.type != _RELOCATIONS or row.info not in begins:
            continue
        for offset, info, addend in _RELOCATION.iter_unpack(code[row.offset : row.offset + row.size]):
            symbol = symbols[info >> 32]
            if info & 0xFFFFFFFF != _ABSOLUTE_64 or symbol.section not in begins:
                return None
            places.append(begins[row.info] + offset)
            _PLACE.pack_into(memory, places[-1], begins[symbol.section] + symbol.value + addend)
    return b"".join([_HEAD.pack(MAGIC, found, len(places)), *map(_PLACE.pack, places), memory])


def is_image(code: bytes) -> bool:
    return code.startswith(MAGIC)


def loaded(image: bytes) -> tuple[int, Any]:
    """(address of the entry, what must stay as long as it is called).  OSError: the system lets no code be loaded."""
    _, entry, count = _HEAD.unpack_from(image)
    begin = _HEAD.size + _PLACE.size * count
    memory = mmap.mmap(-1, len(image) - begin, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ | mmap.PROT_WRITE)
    memory.write(image[begin:])
    mapped = ctypes.c_char.from_buffer(memory)
    address = ctypes.addressof(mapped)
    for (place,) in _PLACE.iter_unpack(image[_HEAD.size : begin]):
        _PLACE.pack_into(memory, place, _PLACE.unpack_from(memory, place)[0] + address)
    system = ctypes.CDLL(None, use_errno=True)
    if system.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(len(memory)), mmap.PROT_READ | mmap.PROT_EXEC):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return address + entry, mapped


def _sections(code: bytes) -> list[_Section]:
    """None of a file of another kind."""
    if len(code) < _FILE.size:
        return []
    magic, bits, order, _, machine, _, _, _, table, _, _, _, _, size, count, _ = _FILE.unpack_from(code)
    if (magic, bits, order, machine, size) != (_ELF, _BITS_64, _LITTLE, _X86_64, _SECTION.size):
        return []
    return [_Section(*_SECTION.unpack_from(code, table + size * number)) for number in range(count)]


def _laid_out(sections: list[_Section]) -> tuple[dict[int, int], int]:
    """(section -> where it begins, bytes of all), of those that are there at run time; nothing if one of them is written to."""
    begins, end = dict[int, int](), 0
    for number, row in enumerate(sections):
        if not row.flags & _IN_MEMORY or row.type == _UNWINDING:
            continue
        if row.flags & _WRITABLE or row.type == _NO_BITS:
            return {}, 0
        begins[number] = -(-end // max(row.multiple, 1)) * max(row.multiple, 1)
        end = begins[number] + row.size
    return begins, end


def _symbols(code: bytes, sections: list[_Section], table: _Section) -> Iterator[_Symbol]:
    names = sections[table.link].offset
    for name, _, _, section, value, _ in _SYMBOL.iter_unpack(code[table.offset : table.offset + table.size]):
        yield _Symbol(code[names + name : code.index(b"\0", names + name)].decode(), section, value)
