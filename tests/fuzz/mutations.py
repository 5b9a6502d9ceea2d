"""Ways to hurt a file."""

import random
import re

_NUMBERS = [b"0", b"-1", b"1", b"255", b"2147483648", b"9" * 18, b"1e999", b"nan", b""]
_WORDS = [0, 1, 2**7, 2**8, 2**15, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, -1]
_DIGITS = re.compile(rb"\d+")


def mutate(content: bytes, rng: random.Random, others: list[bytes]) -> bytes:
    """Hurt it once or a few times; `others` lend bytes."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        content = rng.choice(_ALL)(content, rng, others)
    return content


def _place(content, rng):
    """Where to begin: anywhere, at the start or near the end, where headers are."""
    if not content:
        return 0
    near = min(len(content), 200)
    where = rng.randrange(4)
    if where == 0:
        return rng.randrange(near)
    if where == 1:
        return len(content) - 1 - rng.randrange(near)
    return rng.randrange(len(content))


def _length(rng):
    return rng.choice((1, 2, 3, 4, 8, 16, 64, 300))


def flip(content, rng, others):
    hurt, place = bytearray(content), _place(content, rng)
    if hurt:
        hurt[place] ^= 1 << rng.randrange(8)
    return bytes(hurt)


def byte(content, rng, others):
    hurt, place = bytearray(content), _place(content, rng)
    if hurt:
        hurt[place] = rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))
    return bytes(hurt)


def insert(content, rng, others):
    place = _place(content, rng)
    return content[:place] + rng.randbytes(_length(rng)) + content[place:]


def delete(content, rng, others):
    place = _place(content, rng)
    return content[:place] + content[place + _length(rng) :]


def truncate(content, rng, others):
    return content[: _place(content, rng)]


def repeat(content, rng, others):
    place, length = _place(content, rng), _length(rng)
    part = content[place : place + length] * rng.choice((2, 3, 50))
    return content[:place] + part + content[place + length :]


def splice(content, rng, others):
    other = rng.choice(others)
    place, start, length = _place(content, rng), _place(other, rng), _length(rng)
    part = other[start : start + length]
    return content[:place] + part + content[place + len(part) :]


def cross(content, rng, others):
    """The beginning of one and the end of another."""
    other = rng.choice(others)
    return content[: _place(content, rng)] + other[_place(other, rng) :]


def word(content, rng, others):
    """A number of four or eight bytes: lengths and offsets."""
    size = rng.choice((4, 8))
    value = rng.choice(_WORDS) % 2 ** (8 * size)
    place = _place(content, rng)
    part = value.to_bytes(size, rng.choice(("little", "big")))
    return content[:place] + part + content[place + size :]


def number(content, rng, others):
    """A number that is written in text."""
    found = list(_DIGITS.finditer(content))
    if not found:
        return flip(content, rng, others)
    match = rng.choice(found)
    return content[: match.start()] + rng.choice(_NUMBERS) + content[match.end() :]


_ALL = (
    *(flip, byte, insert, delete, truncate, repeat, splice, cross, word, number),
    *(flip, number),
)
