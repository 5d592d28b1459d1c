"""What a session has cost: time, memory and rows by rule and operator, what rules share, and slow shapes with faster forms.

An operator that several rules use counts for each of them in equal parts, so that the rules add up to the whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import Any

from augury.core.bounds import FAR
from augury.engine.inspect import OperatorMetrics, metrics_of
from augury.engine.session import Session
from augury.explain.operator_plan import OperatorPlan
from augury.planner import specs as s

_MANY = 10_000  # rows below which no shape is called slow
_WASTE = 20  # rows looked at for each row of the output


@dataclass(frozen=True)
class OperatorCost:
    """An operator with the rules that use it."""

    number: int
    text: str
    rules: tuple[str, ...]
    metrics: OperatorMetrics


@dataclass(frozen=True)
class RuleCost:
    """A rule with its part of what its operators cost. `shared` are the rules with which it shares some of them."""

    rule: str
    seconds: float
    bytes: int
    rows: int
    touched: int
    answers: int
    shared: tuple[str, ...]


@dataclass(frozen=True)
class SlowShape:
    """An operator that works much for what it gives, and a form of the rule that works less."""

    operator: int
    rules: tuple[str, ...]
    problem: str
    hint: str


@dataclass(frozen=True)
class Profile:
    """The costs of a session, the dearest first."""

    rules: tuple[RuleCost, ...]
    operators: tuple[OperatorCost, ...]
    hints: tuple[SlowShape, ...]
    flames: tuple[Flame, ...]
    events: int
    state: int  # bytes

    @property
    def seconds(self) -> float:
        return sum(operator.metrics.seconds for operator in self.operators)

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def _lines(self) -> Iterator[str]:
        yield f"{self.events:,} events, {self.seconds * 1000:,.1f} ms in operators, {_size(self.state)} of state"
        yield ""
        width = max([4, *(len(rule.rule) for rule in self.rules)])
        yield f"{'rule':<{width}}  {'time':>10} {'share':>6} {'memory':>9} {'kept':>10} {'touched':>12} {'derived':>10}"
        for rule in self.rules:
            share = rule.seconds / self.seconds if self.seconds else 0
            yield (
                f"{rule.rule:<{width}}  {rule.seconds * 1000:>7,.1f} ms {share:>6.1%} {_size(rule.bytes):>9} "
                f"{rule.rows:>10,} {rule.touched:>12,} {rule.answers:>10,}"
            )
        yield ""
        yield "operators, the dearest first"
        yield f"{'time':>10} {'in':>11} {'out':>11} {'kept':>10} {'touched':>12} {'memory':>9}  operator"
        for operator in self.operators:
            m = operator.metrics
            yield (
                f"{m.seconds * 1000:>7,.1f} ms {m.rows_in:>11,} {m.rows_out:>11,} {m.rows:>10,} {m.touched:>12,} "
                f"{_size(m.bytes):>9}  {operator.number} {operator.text} ({_listed(operator.rules)})"
            )
        shared = [(rule.rule, rule.shared) for rule in self.rules if rule.shared]
        if shared:
            yield ""
            yield "shared"
            yield from (f"  {rule} shares operators with {_listed(others)}" for rule, others in shared)
        for hint in self.hints:
            yield ""
            yield f"slow: operator {hint.operator} of {_listed(hint.rules)}: {hint.problem}"
            yield f"  hint: {hint.hint}"

    def as_json(self) -> dict[str, Any]:
        """All of it as plain data."""
        return {
            "events": self.events,
            "seconds": self.seconds,
            "bytes": self.state,
            "rules": [asdict(rule) for rule in self.rules],
            "operators": [
                {"number": o.number, "text": o.text, "rules": list(o.rules), **o.metrics._asdict()}
                for o in self.operators
            ],
            "hints": [asdict(hint) for hint in self.hints],
        }

    def flame_graph(self) -> str:
        """A flame graph as SVG: rules above all, operators below them, as wide as the time below them."""
        return draw_flames(Flame("all rules", 0.0, self.flames))


def profile(session: Session) -> Profile:
    """What a session has cost so far."""
    circuit = session.circuit
    metrics = {operator.spec: metrics_of(operator) for operator in circuit.operators}
    heads = {label: head.spec for label, head in circuit.heads.items()}
    plan = OperatorPlan(session.plan, metrics, heads, session.clock, metrics)
    users: dict[s.Spec, list[str]] = {}
    for label in heads:
        for spec in plan.below([label]):
            users.setdefault(spec, []).append(label)
    for head in heads.values():  # the set of its events belongs to the rules that derive them
        users.setdefault(head.events, [label for label, other in heads.items() if other.events is head.events])
    operators = [
        OperatorCost(plan.number[spec], _text(plan, spec), tuple(users.get(spec, ())), metrics[spec])
        for spec in plan.specs
        if metrics[spec].rows_in or metrics[spec].rows_out or spec.rule
    ]
    ordered = sorted(operators, key=lambda o: -o.metrics.seconds)
    rules = sorted(
        (_rule_cost(label, head, operators, metrics) for label, head in heads.items()), key=lambda r: -r.seconds
    )
    hints = [hint for spec in plan.specs for hint in _slow(spec, plan.number[spec], users.get(spec, ()), metrics[spec])]
    shown: set[s.Spec] = set()
    flames = [Flame(rule.rule, 0.0, (_flame(plan, heads[rule.rule], shown),)) for rule in rules]
    return Profile(tuple(rules), tuple(ordered), tuple(hints), tuple(flames), session.counted, circuit.bytes)


def _text(plan: OperatorPlan, spec: s.Spec) -> str:
    words = f"{spec.kind} {spec.type}/{spec.arity}" if isinstance(spec, s.InputSpec | s.SetSpec) else plan.words(spec)
    return words if isinstance(spec, s.InputSpec | s.SetSpec) or words.startswith(spec.kind) else f"{spec.kind} {words}"


def _rule_cost(
    label: str, head: s.DeriveSpec, operators: Sequence[OperatorCost], metrics: dict[s.Spec, OperatorMetrics]
) -> RuleCost:
    """A rule's part of its operators, and the rules that have the other parts."""
    used = [operator for operator in operators if label in operator.rules]
    seconds = sum(o.metrics.seconds / len(o.rules) for o in used)
    size, rows, touched = (
        round(sum(getattr(o.metrics, name) / len(o.rules) for o in used)) for name in ("bytes", "rows", "touched")
    )
    inputs = [o for o in used if not o.text.startswith(("input ", "set "))]
    shared = {rule for o in inputs for rule in o.rules} - {label}
    return RuleCost(label, seconds, size, rows, touched, metrics[head].rows_out, tuple(sorted(shared)))


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:4])
    return f"{shown} and {len(names) - 4} more" if len(names) > 4 else shown or "no rule"


def _size(number: float) -> str:
    for unit in ("B", "kB", "MB"):
        if number < 1000:
            return f"{number:,.0f} {unit}"
        number /= 1000
    return f"{number:,.1f} GB"


# Slow shapes


def _slow(spec: s.Spec, number: int, rules: Sequence[str], metrics: OperatorMetrics) -> Iterator[SlowShape]:
    """What makes an operator slow, and what would make it faster."""

    def shape(problem: str, hint: str) -> SlowShape:
        return SlowShape(number, tuple(rules), problem, hint)

    if metrics.touched > _MANY:
        wasted = metrics.touched > _WASTE * max(1, metrics.rows_out)
        looked = f"it looks at {metrics.touched:,} rows for {metrics.rows_out:,}"
        match spec:
            case s.JoinSpec() if not spec.keys and (wasted or metrics.rows_out > 10 * metrics.rows_in):
                pairs = f"{metrics.rows_out:,} pairs of {metrics.rows_in:,} rows"
                hint = "let its two sides share a variable, as `a(K) SEQ b(K)` does, or give it a window, `(…).10min`"
                yield shape(f"a join without a key: {looked if wasted else pairs}", hint)
            case s.JoinSpec() if wasted:
                yield shape(
                    f"few of its pairs meet the conditions: {looked}",
                    "make its window shorter, or share one more variable",
                )
            case s.ChoiceSpec() if wasted:
                hint = "a policy on SEQ without an absence, without `per`, looks back along a chain instead; or shorten the window"
                yield shape(f"a policy that lists its candidates: {looked}", hint)
            case s.AbsenceSpec() if wasted and not spec.keys:
                hint = "let the absent event share a variable with the pattern, `NOT(c(K)).[a(K), b(K)]`"
                yield shape(f"an absence without a key: {looked}", hint)
            case s.CollectSpec() if wasted and not isinstance(spec, s.RangedCollectSpec):
                hint = "count, sum, avg, min, max, first, last and percentile of plain values keep running totals; filter what is collected in a rule of its own"
                yield shape(f"an aggregate that lists its members: {looked}", hint)
    unbounded = [kept for kept in spec.keeps if kept.count is None and kept.points >= FAR]
    if unbounded and metrics.rows_in > _MANY:
        state = " and ".join(kept.what for kept in unbounded)
        yield shape(f"it keeps {state} for ever", "give the rule a window, `(…).10min`, or run with --retention")


# Flame graphs


@dataclass(frozen=True)
class Flame:
    """A box of a flame graph: its own time, and the boxes on it."""

    name: str
    itself: float
    above: tuple[Flame, ...] = ()

    @property
    def total(self) -> float:
        return self.itself + sum(flame.total for flame in self.above)


def _flame(plan: OperatorPlan, spec: s.Spec, shown: set[s.Spec]) -> Flame:
    """The operators below one; what several rules share stands in the first."""
    if spec in shown or spec not in plan.metrics:
        return Flame(f"{_text(plan, spec)} (shared)", 0.0)
    shown.add(spec)
    below = [_flame(plan, rows.source, shown) for rows in spec.inputs]
    if isinstance(spec, s.DeriveSpec):
        below.append(_flame(plan, spec.events, shown))
    return Flame(_text(plan, spec), plan.metrics[spec].seconds, tuple(below))


_WIDTH, _ROW = 1200.0, 18


def draw_flames(root: Flame) -> str:
    """Boxes from the bottom up; hovering one shows its name and time."""
    boxes: list[str] = []
    deepest = 0

    def draw(flame: Flame, left: float, width: float, depth: int) -> None:
        nonlocal deepest
        if width < 0.5:
            return
        deepest = max(deepest, depth)
        shown = flame.name if len(flame.name) * 6.5 < width else flame.name[: max(0, int(width / 6.5) - 1)] + "…"
        hue = 20 + sum(map(ord, flame.name)) % 35
        label = f"<text x='{left + 3:.1f}' y='{{y}}'>{escape(shown)}</text>" if width > 25 else ""
        title = (
            f"<title>{escape(flame.name)}: {flame.total * 1000:.2f} ms, {flame.itself * 1000:.2f} ms of its own</title>"
        )
        boxes.append(
            f"{depth}|<g>{title}<rect x='{left:.1f}' y='{{top}}' width='{width:.1f}' height='{_ROW - 1}' "
            f"fill='hsl({hue} 85% 62%)' rx='2'/>{label}</g>"
        )
        for above in sorted(flame.above, key=lambda flame_above: -flame_above.total):
            part = width * above.total / flame.total if flame.total else 0
            draw(above, left, part, depth + 1)
            left += part

    draw(root, 0, _WIDTH, 0)
    height = (deepest + 1) * _ROW
    placed = []
    for box in boxes:
        depth, _, text = box.partition("|")
        top = height - (int(depth) + 1) * _ROW
        placed.append(text.replace("{top}", str(top)).replace("{y}", str(top + 13)))
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {_WIDTH:.0f} {height}' width='{_WIDTH:.0f}' height='{height}' "
        f"font-family='ui-monospace, Menlo, Consolas, monospace' font-size='11'>"
        f"<rect width='100%' height='100%' fill='#fff'/>{''.join(placed)}</svg>\n"
    )
