"""Syntax to the algebra's expressions and conditions, with the checks that a single expression allows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal, assert_never, cast

from augury.algebra.aggregates import pair, where
from augury.algebra.kinds import positive_atoms
from augury.algebra.nodes import AnyOf, Compare, Condition, Holds, NoneInside, Relates, Relative, Spans, Unless
from augury.algebra.plan import Query
from augury.algebra.regular import RegularExpressionError, check_pattern
from augury.algebra.relations import RELATIONS
from augury.algebra.scalar import Function
from augury.algebra.sparql_conditions import KNOWN_PREFIXES, query_name, with_prefixes
from augury.algebra.terms import Aggregate, Apply, Build, Const, Expr, Moment, Prev, Var, Wild
from augury.algebra.wall_time import check_time_format
from augury.core.clock import SECOND, Duration
from augury.core.errors import NOWHERE, Span, counted, nearest
from augury.core.model import Iri
from augury.language.rules import syntax as s
from augury.language.rules.named_arguments import by_place
from augury.language.rules.show import show_node
from augury.language.rules.symbols import LENGTH, MOMENTS, OVERLAP, Symbols

_WRONG = Const(None)
# Functions whose second argument, where it is a constant, is checked before the program runs.
# Functions of other languages, and what this one has.
_ELSEWHERE = {
    "lag": "the value before is `prev(X)` in a run, or that of the previous event: `last 2: collect a(N, X)` with `first(X)`",
    "lead": "the value after is that of the next part of a run: `a(N, X) NEXT a(N, Y)`",
    "prev": "the value one iteration earlier is `prev(X)`, in a condition of a run: `a(N, X)+ WHERE X > prev(X)`",
    "first_value": "it is `first(X)`",
    "last_value": "it is `last(X)`",
    **dict.fromkeys(("row_number", "rank", "dense_rank"), "the place in a ranking is R in `TOP 10 BY X PER (N) AS R`"),
    "iif": "it is `if(c, a, b)`",
    "ifnull": "it is `coalesce(a, b)`",
    "nvl": "it is `coalesce(a, b)`",
    **dict.fromkeys(
        ("now", "today", "current_timestamp", "getdate"),
        "an answer depends on the times of events, not on when it is computed: the time of a label is `end(o)`",
    ),
    "datediff": "it is a difference of times: `end(b) - start(a)`",
}
_RE2 = ("E262", check_pattern, "expressions are those of RE2, without \\1 and (?=…)")
_CHECKED: dict[str, tuple[str, Callable[[str], None], str]] = {
    "matches": _RE2,
    "regexp_extract": _RE2,
    "format_time": ("E269", check_time_format, "a format is such as '%Y-%m-%d %H:%M:%S'; %% is a percent sign"),
}


@dataclass(frozen=True)
class ExpressionReader:
    """Reads the expressions of one rule. `labels` are the labels that the rule defines."""

    symbols: Symbols
    labels: dict[str, Span] = field(default_factory=dict)
    counted_labels: set[str] = field(default_factory=set)  # those of parts of a run, and of what is collected
    held_in: dict[str, str] = field(
        default_factory=dict
    )  # the windows of collected intervals of facts, by their labels
    labelled: dict[str, str] = field(default_factory=dict)  # the event behind a label, where it is a plain one
    may_aggregate: bool = False
    in_run: bool = False  # conditions may ask for earlier iterations, and aggregate over them
    in_prev: bool = False
    in_static_rule: bool = False

    def error(self, code: str, message: str, span: Span, hint: str | None = None) -> None:
        self.symbols.findings.add(code, message, span, hint=hint)

    def _no_value(self, code: str, message: str, span: Span, hint: str | None = None) -> Expr:
        self.error(code, message, span, hint)
        return _WRONG

    def _no_condition(self, code: str, message: str, span: Span, hint: str | None = None) -> list[Condition]:
        self.error(code, message, span, hint)
        return []

    # Values

    def match(self, node: s.Node) -> Expr:
        """An argument of a body: something to match, never something to compute."""
        match node:
            case Var() | Wild() | Const():
                return node
            case s.BareName():
                return Const(node.text, node.span)
            case s.CallTerm() if node.name in self.symbols.functions:
                self._computed(node)
            case s.CallTerm():
                return Build(node.name, tuple(self.match(a) for a in node.args), node.span)
            case s.Arith():
                self._computed(node)
            case s.Chain():
                hint = "a condition stands after WHERE, or as a literal of its own"
                self.error("E207", f"`{show_node(node)}` cannot be an argument", node.span, hint)
            case _:
                self.error("E207", f"`{show_node(node)}` cannot be an argument", node.span)
        return _WRONG

    def _computed(self, node: s.Node) -> None:
        used = {part.name for part in s.walk(node) if isinstance(part, Var)}
        fresh = next(name for name in ("X", "Y", "Z", "V", "W", "Result") if name not in used)
        say = "" if self.in_static_rule else "WHERE "
        hint = f"put a variable there, `{fresh}`, and say `{say}{fresh} = {show_node(node)}`"
        self.error("E208", "an argument of a body cannot compute", node.span, hint)

    def value(self, node: s.Node, arithmetic: bool = False) -> Expr:
        """Something to compute."""
        match node:
            case Var() | Const():
                return node
            case Wild():
                self.error("E209", "`_` has no value to use", node.span, "give the variable a name, in both places")
            case s.BareName():
                function = self.symbols.functions.get(node.text) if arithmetic else None
                if function is not None and function.takes(0):
                    return Apply(node.text, (), node.span, function.pure)
                return Const(node.text, node.span)
            case s.Arith():
                return Apply(node.op, tuple(self.value(a, True) for a in node.args), node.span)
            case s.CallTerm():
                return self._call(node)
            case s.Where() | s.Filtered():
                self.error("E210", "`where` belongs to an aggregate", node.span.part(r"\bwhere\b"))
            case _:
                hint = _negation_form(node.negated) if isinstance(node, s.Not) else None
                self.error("E207", f"`{show_node(node)}` is not a value", node.span, hint)
        return _WRONG

    def _call(self, node: s.CallTerm) -> Expr:
        symbols, name, count = self.symbols, node.name, len(node.args)
        moment = self._moment(node)
        if moment is not None:
            return moment
        function = symbols.functions.get(name)
        if name == "prev" and function is None and (self.in_run or name not in symbols.functors):
            return self._prev(node)
        if name in symbols.aggregates and (function is None or (count <= 1 and not function.takes(count))):
            return self._aggregate(node)
        if node.distinct:
            self.error("E210", "`distinct` belongs to an aggregate", node.span.part(r"\bdistinct\b"))
        if name == "if" and count == 3 and not (function is not None and function.registered):
            return self._if(node)
        if name == "iri" and count == 1 and isinstance(node.args[0], Const):
            prefixed = self.typed(node.args[0], "iri")
            if prefixed is not node.args[0]:
                return prefixed
        if name in _CHECKED and count > 1 and isinstance(node.args[1], Const):
            self._check_text(node.args[1], *_CHECKED[name])
        if function is not None:
            if not function.takes(count):
                return self._no_value("E206", f"`{name}` takes {_arity(function)}, not {count}", node.span)
            return Apply(name, tuple(self.value(a, True) for a in node.args), node.span, function.pure)
        if name in symbols.functors:
            return Build(name, tuple(self.value(a) for a in node.args), node.span)
        return self._unknown_function(node)

    def _moment(self, node: s.CallTerm) -> Expr | None:
        """`start(o)`, `end(o)`, `duration(o)` and `length(o)`, where the call is one of them."""
        name, symbols = node.name, self.symbols
        if name == OVERLAP and not symbols.functions[name].registered:
            return self._overlap(node)
        label = node.args[0] if len(node.args) == 1 and isinstance(node.args[0], s.BareName) else None
        if label is not None and name == LENGTH and label.text in self.labels:
            return Moment("length", label.text, node.span)
        if label is not None and name in MOMENTS:
            self.known_label(label.text, label.span)
            return Moment(cast(Literal["start", "end", "duration"], name), label.text, node.span)
        if name in MOMENTS and name not in symbols.functions and name not in symbols.functors:
            hint = f"name the occurrence, `o: order(N)`, and write `{name}(o)`"
            return self._no_value("E212", f"`{name}` takes a label", node.span, hint)
        return None

    def _overlap(self, node: s.CallTerm) -> Expr:
        """`overlap(i, j)`: the duration that two labels share, a function of their four times."""
        times: list[Expr] = []
        for label in node.args:
            if not isinstance(label, s.BareName) or len(node.args) != 2:
                hint = "name two occurrences, and write `overlap(i, j)`"
                return self._no_value("E212", f"`{OVERLAP}` takes two labels", node.span, hint)
            self.known_label(label.text, label.span)
            times += [Moment(bound, label.text, label.span) for bound in ("start", "end")]
        first, second = (label.text for label in node.args if isinstance(label, s.BareName))
        for held, window in ((first, second), (second, first)):
            if self.held_in.get(held) == window:  # it lies in its window, which by the clock counts to its very end
                return Moment("duration", held, node.span)
        return Apply(OVERLAP, tuple(times), node.span)

    def _aggregate(self, node: s.CallTerm) -> Expr:
        name, count = node.name, len(node.args)
        if not (self.may_aggregate or self.in_run) or self.in_prev:
            message = f"`{name}` aggregates, but the rule collects nothing here"
            where = "a rule with `while w: collect …` or `last 5: collect …`"
            return self._no_value(
                "E210", message, node.span, f"aggregates stand in the head, or a condition, of {where}"
            )
        takes = 1 if self.symbols.aggregates[name].more is None else 2
        match node.args[-1:]:
            case (s.Where(pattern=value, condition=condition),):
                return self._filtered(replace(node, args=(*node.args[:-1], value)), condition)
            case (s.Filtered(condition=condition),):
                return self._filtered(replace(node, args=node.args[:-1]), condition)
        if count != takes and not (count == 0 and name == "count"):
            return self._no_value("E206", f"`{name}` takes {counted(takes, 'argument')}, not {count}", node.span)
        match node.args:
            case (s.BareName(text=named),) if name == "count" and named in self.counted_labels:
                # The iterations of a label are counted by the time that each has.
                return Aggregate("count", (Moment("start", named, node.span),), node.distinct, node.span)
        inside, tests = replace(self, may_aggregate=False, in_run=False), name in ("any", "all")
        args = tuple(inside._truth(a) if tests and not isinstance(a, Var) else inside.value(a) for a in node.args)
        return Aggregate(name, (pair(*args),) if takes == 2 else args, node.distinct, node.span)

    def _filtered(self, node: s.CallTerm, condition: s.Node) -> Expr:
        """`sum(V where V > 3)`: over the members for which the condition holds."""
        part = self._aggregate(node)
        holds = replace(self, may_aggregate=False, in_run=False)._truth(condition, "the condition of an aggregate")
        return where(part, holds, self.symbols.aggregates) if isinstance(part, Aggregate) else part

    def _unknown_function(self, node: s.CallTerm) -> Expr:
        symbols, name = self.symbols, node.name
        if name.lower() in _ELSEWHERE:
            hint = _ELSEWHERE[name.lower()]
            return self._no_value("E201", f"unknown function `{name}`", node.span.part(r"^[^(]+"), hint)
        names = {*symbols.functions, *symbols.aggregates, *symbols.functors, *MOMENTS}
        hint = f"register it from Python, or declare it: `function {name}(x: float): float.`"
        match node.args:
            case _ if symbols.is_condition(name):
                hint = f"`{name}` is a static predicate, which holds or does not: ask `{show_node(node)}` as a condition of its own"
            case (s.BareName(text=label),) if label in self.labels:
                hint = "the times of a label are " + ", ".join(f"`{m}({label})`" for m in MOMENTS)
            case _ if self.may_aggregate:
                hint += f"; the aggregates are {', '.join(sorted(filter(str.isidentifier, symbols.aggregates)))}"
            case _:
                hint += "; to build a nested term, declare the argument of the head as `term`"
        symbols.unknown("function", name, node.span.part(r"^[^(]+"), {k for k in names if k.isidentifier()}, hint)
        return _WRONG

    def _prev(self, node: s.CallTerm) -> Expr:
        """`prev(X)` and `prev(X, D)`, in a condition of a run."""
        if not self.in_run or self.in_prev:
            message = "`prev` stands in a condition on the iterations of a run, not inside another `prev`, an aggregate or a head"
            hint = "it is the value one iteration earlier: `tick(S, P)+ WHERE P > prev(P)`"
            return self._no_value("E237", message, node.span, hint)
        if len(node.args) not in (1, 2) or node.distinct:
            self.error(
                "E206",
                f"`prev` takes a value and, if need be, a default, not {counted(len(node.args), 'argument')}",
                node.span,
            )
            return _WRONG
        of = replace(self, in_prev=True).value(node.args[0])
        return Prev(of, self.value(node.args[1]) if len(node.args) == 2 else None, node.span)

    def _check_text(self, text: Const, code: str, check: Callable[[str], None], hint: str) -> None:
        """A regular expression or time format that is written in the program is checked before it runs."""
        try:
            check(str(text.value))
        except (RegularExpressionError, ValueError) as error:
            self.error(code, str(error), text.span, hint)

    def head_argument(self, node: s.Node, type: str) -> Expr:
        """An argument of a head: computed; where it is declared as a term, any nested term may be built."""
        if type == "term" and isinstance(node, s.CallTerm) and node.name not in self.symbols.functions:
            return Build(node.name, tuple(self.head_argument(a, type) for a in node.args), node.span)
        return self.typed(self.value(node), type)

    def typed(self, expr: Expr, type: str) -> Expr:
        """In an argument of type `iri`, a string with a declared prefix is an IRI."""
        if type == "iri" and isinstance(expr, Const) and isinstance(expr.value, str):
            prefix, colon, local = expr.value.partition(":")
            if colon and prefix in self.symbols.prefixes:
                return Const(Iri(self.symbols.prefixes[prefix] + local), expr.span)
        return expr

    def known_label(self, label: str, span: Span) -> bool:
        if label in self.labels:
            return True
        self.symbols.unknown("label", label, span, self.labels, "name an occurrence in the body, such as `o: order(N)`")
        return False

    def length(self, length: Const) -> int:
        """A window in microseconds; a bare number is seconds, or ticks where the program declares its tick."""
        if isinstance(length.value, Duration):
            return length.value.us
        assert isinstance(length.value, int | float)
        return round(length.value * (self.symbols.tick or SECOND))

    # Conditions

    def conditions(self, node: s.Node) -> list[Condition]:
        """A condition, or several in parentheses, braces or joined by `and`."""
        match node:
            case s.Group():
                return [c for item in node.items for c in self.conditions(item)]
            case s.Binary(op="AND"):
                return [c for operand in s.joined(node) for c in self.conditions(operand)]
            case s.Binary(op="OR"):
                options = tuple(tuple(self.conditions(operand)) for operand in s.joined(node))
                return [AnyOf(options, node.span)]
            case s.Binary() if (
                node.op.lower() in RELATIONS
                and isinstance(node.left, s.BareName)
                and isinstance(node.right, s.BareName)
            ):
                are_labels = [self.known_label(n.text, n.span) for n in (node.left, node.right)]  # both are reported
                return [Relates(node.left.text, node.op.lower(), node.right.text, node.span)] if all(are_labels) else []
            case s.Binary() if node.op in s.RUN_OPS:
                message = "WHERE takes everything to its right, and a condition cannot hold a pattern"
                hint = "put parentheses around the pattern with its WHERE: `(a(X) WHERE X > 3) SEQ b(Y)`"
                return self._no_condition("E211", message, node.span, hint)
            case s.Binary():
                self.relation(node)
                return []
            case s.Where():
                hint = "join conditions with `and`: `WHERE T > 30 and T < 90`"
                return self._no_condition(
                    "E213", "WHERE occurs twice in one pattern", node.span.part(r"\bwhere\b"), hint
                )
            case s.Chain() if (asked := self._asked_truth(node)) is not None:
                return self.conditions(asked)
            case s.Chain():
                return self._chain(node)
            case s.Among():
                return self._among(node)
            case s.Between():
                value, low, high = (self.value(n) for n in (node.value, node.low, node.high))
                return [Compare("<=", low, value, node.span), Compare("<=", value, high, node.span)]
            case s.WithinSet():
                return self._spans(node)
            case s.Not(between=None):
                return self._unless(node)
            case s.CallTerm() | s.BareName():
                return self._atom(node)
            case s.Was():
                return self._was(node)
            case s.Holding():
                self.symbols.findings.unread |= {x.name for x in s.walk(node) if isinstance(x, s.CallTerm)}
                hint = "as a condition it is `p(X)`; the times at which it holds are `x: holding p(X)`"
                return self._no_condition("E277", f"`{show_node(node)}` is no condition", node.span, hint)
            case Var() | Const(value=bool()):
                return [Compare("=", node, Const(True), node.span)]
            case _:
                hint = "a condition is a comparison, a static predicate or a relation of labels"
                return self._no_condition("E213", f"`{show_node(node)}` is not a condition", node.span, hint)

    def relation(self, node: s.Binary) -> None:
        """Reports a relation of Allen between what are not two labels."""
        op = node.op.lower()
        hint = f"name the two patterns, `o: a(X), s: b(Y)`, and write `o {op} s`"
        strange = [side for side in (node.left, node.right) if not isinstance(side, s.BareName)]
        if len(strange) == 1:
            self.error("E212", f"`{show_node(strange[0])}` is not a label", strange[0].span, hint)
        else:
            between = "; between patterns the operator is SEQ" if op == "before" else ""
            self.error("E212", f"`{op}` relates two labels", node.span, hint + between)

    def _asked_truth(self, node: s.Chain) -> s.Node | None:
        """`linked(X, Y) = true` as `linked(X, Y)`, and `linked(X, Y) = false` as `not linked(X, Y)`."""
        match node:
            case s.Chain(ops=("=" | "!=" as op,), operands=(s.CallTerm() as atom, Const(value=bool(truth)))):
                pass
            case s.Chain(ops=("=" | "!=" as op,), operands=(Const(value=bool(truth)), s.CallTerm() as atom)):
                pass
            case _:
                return None
        if atom.name in self.symbols.functions or not self.symbols.is_condition(atom.name):
            return None
        return atom if truth == (op == "=") else s.Not(atom, span=node.span)

    def _chain(self, node: s.Chain) -> list[Condition]:
        values = [self.value(o) for o in node.operands]
        for side, other in ((node.operands[0], node.operands[-1]), (node.operands[-1], node.operands[0])):
            if isinstance(side, Const) and side.value is None:
                hint = f"to test for null, write `is_null({show_node(other)})`"
                self.error("W306", "nothing equals or compares with null, so this never holds", node.span, hint)
                break
        return [
            Compare(cast(Literal["=", "!=", "<", "<=", ">", ">="], op), values[i], values[i + 1], node.span)
            for i, op in enumerate(node.ops)
        ]

    def _among(self, node: s.Among) -> list[Condition]:
        """`X in (1, 2)`: equal to one of them; `X not in (1, 2)`: different from all."""
        value, options = self.value(node.value), [self.value(o) for o in node.options]
        if node.negated:
            return [Compare("!=", value, option, node.span) for option in options]
        return [AnyOf(tuple((Compare("=", value, option, node.span),) for option in options), node.span)]

    def _if(self, node: s.CallTerm) -> Expr:
        """`if(X > 3, a, b)`: the condition compares values."""
        condition, then, otherwise = node.args
        return Apply("if", (self._truth(condition), self.value(then, True), self.value(otherwise, True)), node.span)

    def _truth(self, node: s.Node, what: str = "the condition of an `if`") -> Expr:
        """A condition as a value."""
        return _conjunction([self._truth_of(c, what) for c in self.conditions(node)])

    def _truth_of(self, condition: Condition, what: str) -> Expr:
        match condition:
            case Compare():
                return Apply(condition.op, (condition.left, condition.right), condition.span)
            case AnyOf():
                options = [_conjunction([self._truth_of(c, what) for c in option]) for option in condition.options]
                return Apply("|", tuple(options), condition.span)
            case Holds() | Unless() | Relates() | Spans() | Relative() | NoneInside():
                hint = "ask for facts and relations in the body: one rule for each case"
                if what != "the condition of an `if`":
                    hint = "ask for facts and relations in a collect of its own, `while w: collect b(X), near(X)`"
                return self._no_value("E260", f"{what} compares values", condition.span, hint)
            case _:
                assert_never(condition)

    def _spans(self, node: s.WithinSet) -> list[Condition]:
        items = node.labels.items if isinstance(node.labels, s.Group) else (node.labels,)
        names: list[str] = []
        for item in items:
            if not isinstance(item, s.BareName):
                hint = "write `{o, s} within 12h`"
                if isinstance(item, s.CallTerm | s.Binary):
                    hint = f"the window of a pattern is `({show_node(item)}).12h`, that of labels `{{o, s}} within 12h`"
                self.error("E212", f"`{show_node(item)}` is not a label", item.span, hint)
            elif self.known_label(item.text, item.span):
                names.append(item.text)
        return [Spans(tuple(names), self.length(node.length), node.span)] if names else []

    def _unless(self, node: s.Not) -> list[Condition]:
        inner = node.negated
        if isinstance(inner, s.Chain) and (asked := self._asked_truth(inner)) is not None:
            return self.conditions(asked.negated if isinstance(asked, s.Not) else s.Not(asked, span=node.span))
        if isinstance(inner, s.Was):
            return [Unless(c.name, c.args, node.span, True) for c in self._was(inner) if isinstance(c, Holds)]
        if isinstance(inner, s.CallTerm | s.BareName):
            name = inner.name if isinstance(inner, s.CallTerm) else inner.text
            if not self.symbols.is_static(name) and self.symbols.is_event(name) and not self.in_static_rule:
                message = f"the event `{name}` cannot be negated on its own: absence needs an interval"
                hint = f"write `NOT({name}(…)).[first, second]` or `while w: not {name}(…)`"
                return self._no_condition("E214", message, node.span, hint)
            result = self._atom(inner, negated=True)
            return [
                Unless(c.name, c.args, node.span) if isinstance(c, Holds) else _negated(c, node.span)
                for c in result
                if isinstance(c, Holds | Compare)
            ]
        if isinstance(inner, s.Among):
            return self._among(replace(inner, negated=not inner.negated))
        if isinstance(inner, s.Between):
            value, low, high = (self.value(n) for n in (inner.value, inner.low, inner.high))
            outside = ((Compare("<", value, low, node.span),), (Compare(">", value, high, node.span),))
            return [AnyOf(outside, node.span)]
        if isinstance(inner, s.Chain) and len(inner.ops) == 1:
            return [_negated(c, node.span) for c in self._chain(inner) if isinstance(c, Compare)]
        advice = "give what is negated a static rule of its own" if isinstance(inner, s.Group | s.Binary) else None
        return self._no_condition("E213", f"`{show_node(node)}` is not a condition", node.span, advice)

    def _was(self, node: s.Was) -> list[Condition]:
        """`was p(X)`: the facts of the time point before."""
        name = (
            node.atom.name
            if isinstance(node.atom, s.CallTerm)
            else node.atom.text
            if isinstance(node.atom, s.BareName)
            else ""
        )
        hint = "write `was p(X)`, or `not was p(X)`, with a static predicate"
        if self.in_static_rule:
            hint = "ask for it in the event rule that uses this one: `was` may stand before any static predicate"
            return self._no_condition(
                "E267", "`was` belongs to an event rule: a static rule has no earlier time", node.span, hint
            )
        if not isinstance(node.atom, s.CallTerm | s.BareName):
            return self._no_condition("E267", f"`{show_node(node.atom)}` is not a static predicate", node.span, hint)
        if self.symbols.is_event(name) and not self.symbols.is_static(name):
            hint = f"make a fact of it, `fact seen(X) <- {name}(X).`, and ask `was seen(X)`"
            return self._no_condition("E267", f"`{name}` is an event, and `was` asks for facts", node.span, hint)
        result = self._atom(node.atom)
        if any(not isinstance(c, Holds) for c in result):
            return self._no_condition("E267", f"`{show_node(node.atom)}` does not change with time", node.span, hint)
        return [replace(c, was=True, span=node.span) for c in positive_atoms(result)]

    def _atom(self, node: s.CallTerm | s.BareName, negated: bool = False) -> list[Condition]:
        """A static predicate, or a function that is true or false."""
        symbols = self.symbols
        name, args = (node.name, node.args) if isinstance(node, s.CallTerm) else (node.text, ())
        if name == "sparql" and not symbols.is_static(name) and isinstance(node, s.CallTerm):
            return self._query(node)
        others = {*symbols.clauses, *symbols.static, *symbols.facts}
        if symbols.is_property(name) and len(args) != 2 and not nearest(name, others):
            message = (
                f"`{show_node(node)}` has {counted(len(args), 'argument')}: a property has a subject and an object"
            )
            hint = "declare it as `static`, if its facts are not those of a graph"
            return self._no_condition("E206", message, node.span, hint)
        if symbols.is_static(name) or (symbols.is_property(name) and len(args) == 2):
            return [Holds(name, self.static_args(name, args), node.span)]
        if name in symbols.functions and isinstance(node, s.CallTerm):
            return [Compare("=", self._call(node), Const(True), node.span)]
        aggregate = symbols.aggregates.get(name)
        ranges = aggregate is not None and aggregate.result == "bool" and (self.may_aggregate or self.in_run)
        if ranges and isinstance(node, s.CallTerm) and not symbols.is_event(name):
            return [Compare("=", self._call(node), Const(True), node.span)]
        if symbols.is_event(name):
            if self.in_static_rule:
                hint = "a rule that reads events is written with `<-`"
                self.error("E205", f"the event `{name}` stands in a static rule", node.span, hint)
            else:
                hint = "join events with SEQ, AND and the other operators, or as literals of their own"
                self.error("E205", f"the event `{name}` stands where a condition is expected", node.span, hint)
            return []
        names = {*symbols.clauses, *symbols.static, *symbols.facts, *(f for f in symbols.functions if f.isidentifier())}
        hint = f"write facts or rules for it, give them with --facts {name}=FILE, or declare it: `static {name}(…).`"
        if not self.in_static_rule:
            hint += (
                f"; absence of an event is written `NOT({name}(…)).[a, b]` or `while w: not {name}(…)`"
                if negated
                else "; an event stands outside WHERE, as in `(a(X) WHERE X > 3) AND b(X)`"
            )
        symbols.unknown("static predicate", name, node.span.part(r"^[^(]+"), names, hint)
        return []

    def _query(self, node: s.CallTerm) -> list[Condition]:
        """`sparql("SELECT …", X, Y)`: the answers of a query, as facts."""
        if not node.args or not isinstance(node.args[0], Const) or not isinstance(node.args[0].value, str):
            hint = 'write `sparql("SELECT ?x WHERE { … }", X)`'
            return self._no_condition("E230", "`sparql` begins with its query, a string", node.span, hint)
        text = with_prefixes(node.args[0].value, {**KNOWN_PREFIXES, **self.symbols.prefixes})
        name, arity = query_name(text), len(node.args) - 1
        self.symbols.queries.setdefault(name, Query(text, arity, node.args[0].span))
        return [Holds(name, tuple(self.match(a) for a in node.args[1:]), node.span)]

    def static_args(self, name: str, args: tuple[s.Node, ...]) -> tuple[Expr, ...]:
        declared = self.symbols.static.get(name)
        args = by_place(name, args, declared, self.symbols.findings)
        types = [a.type for a in declared.attributes] if declared else ["iri" if ":" in name else "any"] * len(args)
        types += ["any"] * (len(args) - len(types))
        return tuple(self.typed(self.match(a), t) for a, t in zip(args, types, strict=False))


def _conjunction(tests: list[Expr]) -> Expr:
    return tests[0] if len(tests) == 1 else Apply("&", tuple(tests), tests[0].span if tests else NOWHERE)


def _arity(function: Function) -> str:
    """How many arguments a function takes, in words."""
    takes = [n for n in range(8) if function.takes(n)]
    if len(takes) == 1:
        return counted(takes[0], "argument")
    return f"{takes[0]} or more arguments" if takes[-1] == 7 else f"{takes[0]} to {takes[-1]} arguments"


def _negation_form(node: s.Node) -> str:
    """`not X > 3` reads as `(not X) > 3`, and `X is not null` is SQL's."""
    if node == Const(None):
        return "that a value is there is asked by `not is_null(X)`"
    return f"a comparison is negated in parentheses: `not ({show_node(node)} > 3)`"


_OPPOSITE = {"=": "!=", "!=": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


def _negated(compare: Compare, span: Span) -> Compare:
    return Compare(
        cast(Literal["=", "!=", "<", "<=", ">", ">="], _OPPOSITE[compare.op]), compare.left, compare.right, span
    )
