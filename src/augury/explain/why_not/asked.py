"""The question of `why-not`: an event type, perhaps with arguments and an interval."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from augury.algebra.matching import Scalars
from augury.algebra.plan import Plan
from augury.algebra.terms import Build, Const, Expr, Var
from augury.core.clock import Clock
from augury.core.errors import RunError, counted, nearest
from augury.core.model import Event, Term, Value, order_key
from augury.notation import read_event, read_fact


@dataclass(frozen=True)
class Asked:
    """An event that is asked about: its type, its arguments unless any will do, its interval where one is given."""

    type: str
    args: tuple[Expr, ...] | None
    interval: tuple[int, int] | None

    def is_met(self, event: Event) -> bool:
        return (
            event.type == self.type
            and (self.interval is None or self.interval == (event.start, event.end))
            and (self.args is None or _all_admit(self.args, event.args))
        )


_TIMED = re.compile(r"(?P<atom>.+?)\s*@\s*(?P<time>\[.*\]|'[^']*'|\"[^\"]*\"|-?\d+)", re.DOTALL)


def read_asked(text: str, clock: Clock, prefixes: Mapping[str, str]) -> Asked:
    """`alarm`, `alarm('l1', _)` or `alarm('l1', _) @ [1, 3]`; a variable is anything, like `_`."""
    timed = _TIMED.fullmatch(text.strip())
    atom, interval = (timed["atom"] if timed else text).strip(), None
    if timed:
        event = read_event(f"it @ {timed['time']}", clock)
        assert isinstance(event, Event)
        interval = (event.start, event.end)
    any_args = "(" not in atom
    result = read_fact(f"{atom}()" if any_args else atom, text, prefixes, "wind('l1', _)")
    return Asked(result.name, None if any_args else result.args, interval)


def underivable(plan: Plan, asked: Asked) -> RunError:
    derived = {rule.type for rule in plan.rules}
    if asked.type in derived:
        has = " or ".join(str(k) for k in sorted({len(r.args) for r in plan.rules if r.type == asked.type}))
        count = counted(len(asked.args or ()), "argument")
        return RunError(f"no rule derives `{asked.type}` with {count}", f"it has {has}")
    close = nearest(asked.type, derived)
    hint = f"did you mean `{close}`?" if close else f"the program derives {', '.join(sorted(derived))}"
    return RunError(f"no rule derives `{asked.type}`", hint)


def admits(asked: Expr, value: Value) -> bool:
    """Whether a value is what was asked for; null is null here."""
    match asked:
        case Const():
            return order_key(asked.value) == order_key(value)
        case Build():
            return isinstance(value, Term) and value.functor == asked.functor and _all_admit(asked.args, value.args)
    return True


def _all_admit(asked: tuple[Expr, ...], values: tuple[Value, ...]) -> bool:
    return len(asked) == len(values) and all(admits(a, v) for a, v in zip(asked, values, strict=True))


def bind(head: Expr, asked: Expr, scalars: Scalars, into: dict[str, Value]) -> bool:
    """Gives the head's variables what is asked for; whether the head can be that at all, computed values aside."""
    match head:
        case Var() if scalars.ground(asked, {}):
            value = scalars.evaluate(asked, {}, {})
            return order_key(into.setdefault(head.name, value)) == order_key(value)
        case Const():
            return admits(asked, head.value)
        case Build() if isinstance(asked, Build):
            same = head.functor == asked.functor and len(head.args) == len(asked.args)
            return same and all(bind(h, a, scalars, into) for h, a in zip(head.args, asked.args, strict=True))
        case Build():
            return not isinstance(asked, Const)
    return True


def atom_with_extra(atom: str, extra: int) -> str:
    """An atom of the user with arguments for those that are not the user's, which may be anything."""
    head, closing, tail = atom.rpartition(")")
    if not extra or not closing:
        return atom
    more = ", ".join("_" * extra)
    return f"{head}{'' if head.rstrip().endswith('(') else ', '}{more}){tail}"
