"""BLAKE2b of many texts at once: the 8 bytes that `hashlib.blake2b(text, digest_size=8)` gives, see RFC 7693."""

from __future__ import annotations

from typing import Any

import numpy as np

from augury.core.arrays import Array
from augury.core.jit import Kernel, helper

MAKES_NO_ARRAYS = True
QUOTE, BACKSLASH = 34, 92
BLOCK, ROUNDS = 128, 12
LANES = 64  # texts of one block that are mixed together
INITIAL = np.array(
    [
        0x6A09E667F3BCC908, 0xBB67AE8584CAA73B, 0x3C6EF372FE94F82B, 0xA54FF53A5F1D36F1,
        0x510E527FADE682D1, 0x9B05688C2B3E6C1F, 0x1F83D9ABFB41BD6B, 0x5BE0CD19137E2179,
    ],
    np.uint64,
)  # fmt: skip
ORDER = np.array(
    [
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15], [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
        [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4], [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
        [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13], [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
        [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11], [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
        [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5], [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0],
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15], [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
    ],
    np.int64,
)  # fmt: skip


@helper
def blend(a: Any, b: Any, c: Any, d: Any, x: Any, y: Any) -> tuple[Any, Any, Any, Any]:
    """The function `G` of the standard: mixes four of the sixteen numbers with two of the text."""
    a = a + b + x
    d = d ^ a
    d = (d >> np.uint64(32)) | (d << np.uint64(32))
    c = c + d
    b = b ^ c
    b = (b >> np.uint64(24)) | (b << np.uint64(40))
    a = a + b + y
    d = d ^ a
    d = (d >> np.uint64(16)) | (d << np.uint64(48))
    c = c + d
    b = b ^ c
    b = (b >> np.uint64(63)) | (b << np.uint64(1))
    return a, b, c, d


@helper
def compress(h: Array, m: Array, count: int, last: bool, initial: Array, order: Array) -> None:
    """The function `F` of the standard: adds a block `m` to the state `h`, in all `count` bytes with it."""
    a0, a1, a2, a3, b0, b1, b2, b3 = h[0], h[1], h[2], h[3], h[4], h[5], h[6], h[7]
    c0, c1, c2, c3, d0, d1, d2, d3 = (
        initial[0], initial[1], initial[2], initial[3], initial[4] ^ np.uint64(count), initial[5], initial[6], initial[7]
    )  # fmt: skip
    if last:
        d2 = ~d2
    for r in range(ROUNDS):
        s = order[r]
        a0, b0, c0, d0 = blend(a0, b0, c0, d0, m[s[0]], m[s[1]])
        a1, b1, c1, d1 = blend(a1, b1, c1, d1, m[s[2]], m[s[3]])
        a2, b2, c2, d2 = blend(a2, b2, c2, d2, m[s[4]], m[s[5]])
        a3, b3, c3, d3 = blend(a3, b3, c3, d3, m[s[6]], m[s[7]])
        a0, b1, c2, d3 = blend(a0, b1, c2, d3, m[s[8]], m[s[9]])
        a1, b2, c3, d0 = blend(a1, b2, c3, d0, m[s[10]], m[s[11]])
        a2, b3, c0, d1 = blend(a2, b3, c0, d1, m[s[12]], m[s[13]])
        a3, b0, c1, d2 = blend(a3, b0, c1, d2, m[s[14]], m[s[15]])
    h[0] ^= a0 ^ c0
    h[1] ^= a1 ^ c1
    h[2] ^= a2 ^ c2
    h[3] ^= a3 ^ c3
    h[4] ^= b0 ^ d0
    h[5] ^= b1 ^ d1
    h[6] ^= b2 ^ d2
    h[7] ^= b3 ^ d3


@helper
def blend_lanes(a: Array, b: Array, c: Array, d: Array, x: Array, y: Array) -> None:
    """`blend` for a number of each text: a loop without branches, which becomes instructions on many numbers at once."""
    for lane in range(LANES):
        p, q, r, s = a[lane], b[lane], c[lane], d[lane]
        p = p + q + x[lane]
        s = s ^ p
        s = (s >> np.uint64(32)) | (s << np.uint64(32))
        r = r + s
        q = q ^ r
        q = (q >> np.uint64(24)) | (q << np.uint64(40))
        p = p + q + y[lane]
        s = s ^ p
        s = (s >> np.uint64(16)) | (s << np.uint64(48))
        r = r + s
        q = q ^ r
        q = (q >> np.uint64(63)) | (q << np.uint64(1))
        a[lane], b[lane], c[lane], d[lane] = p, q, r, s


@helper
def hash_blocks(
    blocks: Array, sizes: Array, owners: Array, count: int, state: Array, initial: Array, order: Array, hashes: Array
) -> None:
    """The hashes of texts of one block, side by side: `blocks` and `state` have a row of numbers for each of the sixteen."""
    first = initial[0] ^ np.uint64(0x01010008)
    for k in range(8):
        for lane in range(LANES):
            state[k, lane] = state[8 + k, lane] = initial[k]
    for lane in range(LANES):
        state[0, lane] = first
        state[12, lane] ^= np.uint64(sizes[lane])
        state[14, lane] = ~state[14, lane]
    for r in range(ROUNDS):
        s = order[r]
        for g in range(4):
            x, y = blocks[s[2 * g]], blocks[s[2 * g + 1]]
            blend_lanes(state[g], state[4 + g], state[8 + g], state[12 + g], x, y)
        for g in range(4):
            x, y = blocks[s[8 + 2 * g]], blocks[s[9 + 2 * g]]
            blend_lanes(state[g], state[4 + (g + 1) % 4], state[8 + (g + 2) % 4], state[12 + (g + 3) % 4], x, y)
    for lane in range(count):
        hashes[owners[lane]] = first ^ state[0, lane] ^ state[8, lane]


@Kernel
def hash_texts(
    data: Array, offsets: Array, quote: int, h: Array, m: Array, block: Array, blocks: Array, state: Array,
    waiting: Array, initial: Array, order: Array, hashes: Array, plain: Array,
) -> None:  # fmt: skip
    """The hashes of texts in `quote` bytes, 0 or 1; `plain` says of each whether JSON would write it as it is.

    `h` and `m` have room for the state and for a block, whose bytes are `block`; `blocks`, `state` and `waiting` for texts
    of one block. Numbers of 64 bits overflow, of which Python would warn, so this is called once it is compiled.
    """
    sizes, owners, lanes = waiting[0], waiting[1], 0
    for i in range(len(hashes)):
        lo, size = offsets[i] - quote, offsets[i + 1] - offsets[i] + 2 * quote
        for k in range(8):
            h[k] = initial[k]
        h[0] ^= np.uint64(0x01010008)  # the parameters: 8 bytes, no key
        escaped, done = 0, 0
        while True:
            more = min(BLOCK, size - done)
            for k in range(BLOCK):
                block[k] = 0
            if quote and done == 0:
                block[0] = QUOTE
            for k in range(quote if done == 0 else 0, more - quote if done + more == size else more):
                byte = data[lo + done + k]
                block[k] = byte
                escaped += (byte < 32) | (byte > 126) | (byte == QUOTE) | (byte == BACKSLASH)
            done += more
            if quote and done == size:
                block[more - 1] = QUOTE
            if size <= BLOCK:
                break
            compress(h, m, done, done == size, initial, order)
            if done == size:
                break
        hashes[i], plain[i] = h[0], escaped == 0
        if size <= BLOCK:
            for k in range(16):
                blocks[k, lanes] = m[k]
            sizes[lanes], owners[lanes] = size, i
            lanes += 1
        if lanes == LANES or i + 1 == len(hashes):
            hash_blocks(blocks, sizes, owners, lanes, state, initial, order, hashes)
            lanes = 0
