"""Shards of members, and tokens."""

from __future__ import annotations

from typing import Dict, Optional


def member_hash(member: str) -> int:
    """FNV-1a, 32 bits, of the UTF-8 bytes of a member's id."""
    value = 0x811C9DC5
    for byte in member.encode("utf-8"):
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return value


def shard_of(member: str, shards: int) -> int:
    """The shard that a member belongs to."""
    if not 1 <= shards <= 64:
        raise ValueError(f"there are 1 to 64 shards; got {shards}")
    return member_hash(member) % shards


def latest(*tokens: Optional[str]) -> Optional[str]:
    """One token that names all that the given ones name: of each shard the greatest sequence.

    `None` stands for no token. Use it to read what several writes did, or never older than an earlier read.
    """
    sequences: Dict[int, int] = {}
    for token in tokens:
        for part in token.split(",") if token else []:
            shard, colon, sequence = part.partition(":")
            if not (colon and shard.isdecimal() and sequence.isdecimal()):
                raise ValueError(f"not a token: {token!r}; it is shard:sequence, several joined by commas")
            sequences[int(shard)] = max(sequences.get(int(shard), 0), int(sequence))
    return ",".join(f"{shard}:{sequence}" for shard, sequence in sorted(sequences.items())) or None
