"""Searches of THEN: from each moment to the soonest one that meets its conditions."""

from __future__ import annotations

from augury.core.arrays import Array, Flags, Integers, RowData
from augury.core.fields import END, START
from augury.core.jit import Kernel, helper
from augury.engine.operators.runs.kernels import NO_CODE
from augury.engine.operators.runs.kernels.records import MomentTests, ThenSearch

MAKES_NO_ARRAYS = True
S_AT, S_FOUND, S_NEXT = 0, 1, 2  # of a moment: how far it has looked, the least end found, the next that waits
NOT_WAITING = -2


@Kernel
def chains_of(new: Array, prev: Integers, after: Integers, chain_of: Array, count: int) -> int:
    """Numbers the chains of new moments; how many there are then."""
    for i in range(len(new)):
        here = new[i]
        if chain_of[here] >= 0:
            continue
        while prev[here] >= 0 and chain_of[here] < 0:
            here = prev[here]
        number = chain_of[here]
        last = new[i]
        while number < 0 and last >= 0:  # none before it has one
            number = chain_of[last]
            last = after[last]
        if number < 0:
            number = count
            count += 1
        while here >= 0 and here != new[i]:
            chain_of[here] = number
            here = after[here]
        chain_of[new[i]] = number
    return count


@Kernel
def seekers(
    changed: Array, data: RowData, alive: Flags, prev: Integers, source: int, state: Array, longest: int, result: Array, marks: Array
) -> tuple[int, int]:  # fmt: skip
    """The moments before others that may find something else now; how many, and how many it looked at."""
    count = touched = 0
    for i in range(len(changed)):
        x = changed[i]
        start, least = data[START, x], data[END, x] - longest
        here = prev[x]
        while here >= 0:
            touched += 1
            if data[END, here] < least:
                break
            if (
                alive[here]
                and not marks[here]
                and data[source, here] >= 0
                and data[END, here] < start
                and state[S_FOUND, here] >= start
            ):
                marks[here] = 1
                result[count] = here
                count += 1
            here = prev[here]
    return count, touched


@Kernel
def waiting(chains: Array, state: Array, heads: Integers, alive: Flags, result: Array) -> int:
    """Takes the moments that wait out of their chains; how many there are."""
    count = 0
    for i in range(len(chains)):
        here = heads[chains[i]]
        heads[chains[i]] = -1
        while here >= 0:
            after = state[S_NEXT, here]
            state[S_NEXT, here] = NOT_WAITING
            if alive[here]:
                result[count] = here
                count += 1
            here = after
    return count


@Kernel
def wait(sources: Array, state: Array, chain_of: Array, heads: Integers) -> None:
    """Puts moments that do not know yet among those that wait in their chains."""
    for i in range(len(sources)):
        m = sources[i]
        if state[S_AT, m] >= -1 and state[S_NEXT, m] == NOT_WAITING:
            state[S_NEXT, m] = heads[chain_of[m]]
            heads[chain_of[m]] = m


@Kernel
def step_back(sources: Array, data: RowData, alive: Flags, prev: Integers, state: Array) -> int:
    """Moves searches that have come to a moment that is dead back to the last one before it that is not.

    A dead moment leaves its chain when another one comes, so that nothing follows it. How many moments it looked at.
    """
    touched = 0
    for i in range(len(sources)):
        m = sources[i]
        here = state[S_AT, m]
        if here < 0 or alive[here]:
            continue
        while here >= 0 and not alive[here]:
            touched += 1
            here = prev[here]
        state[S_AT, m] = here if here >= 0 and data[END, here] > data[END, m] else -1
    return touched


@Kernel
def candidates(sources: Array, portion: int, search: ThenSearch, pairs: Array, done: Array) -> tuple[int, int]:
    """The next moments that may be what moments look for, up to `portion` for each: (from, to). How many, and looked at.

    `done` is 1 where there is no more for now, 2 where nothing that comes can matter; then the place is -2.
    """
    data, alive, after, state = search.data, search.alive, search.after, search.state
    n = touched = 0
    for i in range(len(sources)):
        m = sources[i]
        here = after[state[S_AT, m] if state[S_AT, m] >= 0 else m]
        listed, last = 0, state[S_AT, m]
        while here >= 0 and listed < portion:
            touched += 1
            if alive[here] and data[START, here] > data[END, m]:
                end = data[END, here]
                if end > state[S_FOUND, m] + search.lasts or end - data[START, m] > search.longest:
                    last = -2
                    break
                if data[START, here] <= state[S_FOUND, m] and data[search.target, here] >= 0:
                    pairs[0, n] = m
                    pairs[1, n] = here
                    n += 1
                    listed += 1
            if alive[here]:
                last = here
            here = after[here]
        state[S_AT, m] = last
        if last == -2:
            done[i] = 2
        elif here < 0:
            done[i] = 1
    return n, touched


@helper
def compared(op: int, x: float, y: float) -> bool:
    if op == 0:
        return bool(x < y)
    if op == 1:
        return bool(x <= y)
    if op == 2:
        return bool(x > y)
    if op == 3:
        return bool(x >= y)
    return bool(x == y) if op == 4 else bool(x != y)


@helper
def none_holds(asked: MomentTests, m: int, block: int) -> bool:
    """Whether a test fails for a moment and any one of a block: for the least, or the greatest, of its numbers."""
    tests, numbers, low, high = asked.tests, asked.numbers, asked.low, asked.high
    for t in range(tests.shape[0]):
        op = tests[t, 0]
        if op > 3 or tests[t, 2] == tests[t, 4]:
            continue
        if tests[t, 2]:
            x, y = low[tests[t, 1], block] if op < 2 else high[tests[t, 1], block], numbers[tests[t, 3], m]
        else:
            x, y = numbers[tests[t, 1], m], high[tests[t, 3], block] if op < 2 else low[tests[t, 3], block]
        if not compared(op, x, y):
            return True
    return False


@Kernel
def find_numbers(
    sources: Array, position: int, search: ThenSearch, asked: MomentTests, pairs: Array
) -> tuple[int, int, int]:
    """Searches on from moments until each has found its successor, or there is no more, by conditions on numbers.

    A block of moments that are whole, and whose numbers rule all of them out, is passed over. How far it came, the pairs,
    and how many it looked at.
    """
    data, alive, after, state = search.data, search.alive, search.after, search.state
    tests, numbers, agree, codes = asked.tests, asked.numbers, asked.agree, asked.codes
    n = touched = 0
    for i in range(position, len(sources)):
        m, began = sources[i], n
        spot, least = state[S_AT, m], state[S_FOUND, m]
        here = after[spot if spot >= 0 else m]
        full = False
        while here >= 0:
            touched += 1
            if alive[here] and data[START, here] > data[END, m]:
                if data[END, here] > least + search.lasts or data[END, here] - data[START, m] > search.longest:
                    spot = -2
                    break
                block = here // asked.size
                passed = here % asked.size == 0 and block < len(asked.whole) and asked.whole[block]
                if passed and none_holds(asked, m, block):
                    spot = here + asked.size - 1
                    here = after[spot]
                    continue
                if data[START, here] <= least and data[search.target, here] >= 0:
                    held = True
                    for g in range(agree.shape[0]):
                        code = codes[agree[g, 0], m]
                        held = held and code == codes[agree[g, 1], here] and code != NO_CODE
                    for t in range(tests.shape[0]):
                        if not held:
                            break
                        x = numbers[tests[t, 1], here if tests[t, 2] else m]
                        y = numbers[tests[t, 3], here if tests[t, 4] else m]
                        held = compared(tests[t, 0], x, y)
                    if held:
                        if n == pairs.shape[1]:
                            full = True
                            break
                        pairs[0, n] = m
                        pairs[1, n] = here
                        n += 1
                        least = min(least, data[END, here])
            if alive[here]:
                spot = here
            here = after[here]
        if full:
            return i, began, touched
        state[S_AT, m], state[S_FOUND, m] = spot, least
    return len(sources), n, touched
