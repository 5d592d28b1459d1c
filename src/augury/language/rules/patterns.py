"""Syntax to the algebra's patterns (SEMANTICS 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast

from augury.algebra.nodes import HOLDING, Either, Instant, Join, Node, Policy, Repeat, Scan, Select, Within
from augury.algebra.relations import OPERATORS, RELATIVE
from augury.algebra.terms import Const, Expr, Var, Wild
from augury.core.clock import Duration, Timestamp
from augury.core.errors import Findings, Note, Span
from augury.language.rules import syntax as s
from augury.language.rules.expressions import ExpressionReader
from augury.language.rules.named_arguments import by_place
from augury.language.rules.session_form import is_session, is_turned_session, turned_session
from augury.language.rules.show import show_node
from augury.language.rules.symbols import Symbols

_HOLDING = "write `x: holding p(X)`, as a literal of its own, or `while w: collect x: holding p(X)`"


def read_policy(policy: s.PolicyClause) -> Policy:
    return Policy(
        policy.name,
        cast(Literal["longest", "shortest", "by"], policy.ties),
        policy.by,
        policy.per,
    )


@dataclass
class PatternReader:
    """Reads the patterns of one rule. `policy` holds where an operator names none."""

    reader: ExpressionReader
    policy: Policy

    @property
    def symbols(self) -> Symbols:
        return self.reader.symbols

    @property
    def findings(self) -> Findings:
        return self.reader.symbols.findings

    def pattern(self, node: s.Node) -> Node | None:
        match node:
            case s.CallTerm():
                return self._scan(node.name, node.args, node.span)
            case s.BareName() if not self._is_label(node.text):
                return self._scan(node.text, (), node.span)
            case Const(value=Timestamp() | int() as time) if not isinstance(time, bool):
                return Instant(node, node.span)
            case s.Where():
                return self._where(node)
            case s.Window():
                inner = self.pattern(node.pattern)
                return Within(inner, self.reader.length(node.length), node.span) if inner else None
            case s.Power():
                return self._repeat(node)
            case s.Not(between=(first, second)):
                return self._not(node, first, second)
            case s.Binary() if not s.is_run(node):
                return self._binary(node)
        if isinstance(node, s.Holding):
            self.findings.unread |= {x.name for x in s.walk(node) if isinstance(x, s.CallTerm)}
        code, message, hint = _no_pattern(node)
        span = node.span.part(r"\w+\s*:") if isinstance(node, s.Labelled) else node.span
        return self._wrong(code, message, span, hint)

    def _wrong(self, code: str, message: str, span: Span, hint: str | None = None) -> Node | None:
        self.findings.add(code, message, span, hint=hint)
        return None

    def _is_label(self, name: str) -> bool:
        """Whether a bare name can only be a label: `a: a` labels an event by its own name."""
        reader = self.reader
        return name in reader.labels and reader.labelled.get(name) != name and not self.symbols.is_event(name)

    def _scan(self, name: str, args: tuple[s.Node, ...], span: Span) -> Node | None:
        symbols = self.symbols
        if symbols.is_static(name) and not symbols.is_event(name):
            message = f"the static predicate `{name}` stands where an event is expected"
            hint = "a static predicate is a condition: put it after WHERE, or as a literal of its own"
            return self._wrong("E204", message, span, hint)
        if (
            name in RELATIVE
            and not symbols.is_event(name)
            and args
            and isinstance(args[0], s.BareName)
            and args[0].text in self.reader.labels
        ):
            hint = f"write `w: {' '.join(span.text.split())}`"
            return self._wrong("E224", f"the interval {span.quoted} has no label", span, hint)
        if name in ("every", "previous") and not symbols.is_event(name) and self._clocked(args):
            hint = f"write `w: {' '.join(span.text.split())}`, as a literal of its own"
            return self._wrong("E268", f"the windows {span.quoted} have no label", span, hint)
        if is_turned_session(s.CallTerm(name, args)) and 2 not in symbols.arities.get(name, ()):
            return self._wrong("E276", *turned_session(s.CallTerm(name, args, span=span), "w"))
        if name == "session" and 2 not in symbols.arities.get(name, ()) and is_session(s.CallTerm(name, args)):
            hint = f"write `w: {' '.join(span.text.split())}`, as a literal of its own"
            return self._wrong("E276", f"the session {span.quoted} has no label", span, hint)
        if name in self.findings.unread and not symbols.is_event(name):
            self.findings.doubt(span)
        declared = symbols.events.get(name)
        args = by_place(name, args, declared, self.findings)
        types = [a.type for a in declared.attributes] if declared else []
        types += ["any"] * len(args)
        matched: list[Expr] = [self.reader.typed(self.reader.match(a), t) for a, t in zip(args, types, strict=False)]
        return Scan(name, tuple(matched), span)

    def holding(self, node: s.Node) -> Node | None:
        """`holding p(X)`, of a literal or a collect with a label; WHERE may follow."""
        if isinstance(node, s.Where):
            inner, conditions = self.holding(node.pattern), self.reader.conditions(node.condition)
            return inner if inner is None or not conditions else Select(inner, tuple(conditions), node.span)
        assert isinstance(node, s.Holding)
        match node.atom:
            case s.CallTerm(name=name, args=args) as atom:
                pass
            case s.BareName(text=name) as atom:
                args = ()
            case _:
                return self._wrong(
                    "E277", f"`{show_node(node.atom)}` is no atom, and `holding` takes one", node.span, _HOLDING
                )
        symbols = self.symbols
        if symbols.is_event(name) and not symbols.is_static(name):
            hint = f"make a fact of it, `fact seen(X) <- {name}(X).`, and write `x: holding seen(X)`"
            return self._wrong("E277", f"`{name}` is an event, and `holding` ranges over facts", node.span, hint)
        if not symbols.is_static(name) and not symbols.is_property(name):
            names = {*symbols.clauses, *symbols.static, *symbols.facts, *symbols.made}
            symbols.unknown("static predicate", name, atom.span, names, f"declare it: `static {name}(…).`")
            return None
        declared = symbols.static.get(name)
        args = by_place(name, args, declared, self.findings)
        types = [a.type for a in declared.attributes] if declared else []
        types += ["any"] * len(args)
        matched = [self.reader.typed(self.reader.match(a), t) for a, t in zip(args, types, strict=False)]
        return Scan(f"{HOLDING}{name}", tuple(matched), node.span)

    def _clocked(self, args: tuple[s.Node, ...]) -> bool:
        """Whether arguments are those of windows by the clock: lengths and units, or the label of one."""
        if len(args) == 1 and isinstance(args[0], s.BareName) and args[0].text in self.reader.labels:
            return True
        return bool(args) and isinstance(args[0], Const) and isinstance(args[0].value, Duration)

    def _where(self, node: s.Where) -> Node | None:
        inner = self.pattern(node.pattern)
        conditions = self.reader.conditions(node.condition)
        if inner is None:
            return None
        return Select(inner, tuple(conditions), node.span) if conditions else inner

    def _repeat(self, node: s.Power) -> Node | None:
        inner = self.pattern(node.pattern)
        if node.count == 0:
            return self._wrong("E225", "a pattern is repeated at least once", node.span.part(r"\^\s*0+"))
        if inner is None or node.count == 1:
            return inner
        return Repeat(inner, node.count, node.consecutive, policy=self.policy, span=node.span)

    def _not(self, node: s.Not, first: s.Node, second: s.Node) -> Node | None:
        negated, left, right = self.pattern(node.negated), self.pattern(first), self.pattern(second)
        if negated is None or left is None or right is None:
            return None
        policy = read_policy(node.policy) if node.policy else self.policy
        return Join("SEQ", left, right, absent=negated, policy=policy, span=node.span)

    def _binary(self, node: s.Binary, whole: bool = True) -> Node | None:
        if node.op in s.RUN_OPS and s.is_run(node):
            return self.pattern(node)
        if node.op not in OPERATORS and node.op != "OR":
            self.reader.relation(node)
            return None
        if whole:
            self._check_mixed(node)
        chained = isinstance(node.left, s.Binary) and not node.left.parens
        left = self._binary(node.left, whole=False) if chained else self.pattern(node.left)  # type: ignore[arg-type]
        right = self.pattern(node.right)
        if left is None or right is None:
            return None
        if node.op == "OR":
            if node.policy is not None:
                self.findings.add("E229", "OR takes no policy: it selects nothing", node.policy.span)
            return Either(left, right, node.span)
        policy = read_policy(node.policy) if node.policy else self.policy
        return Join(node.op, left, right, policy=policy, span=node.span)

    def _check_mixed(self, node: s.Binary) -> None:
        """Different operators in one chain without parentheses: legal, but easily misread."""
        ops = [node.op]
        part = node.left
        while isinstance(part, s.Binary) and not part.parens:
            ops.insert(0, part.op)
            part = part.left
        different = [f"`{op}`" for op in dict.fromkeys(ops)]
        if len(different) > 1:
            words = ", ".join(different[:-1]) + " and " + different[-1]
            message = f"{words} are mixed without parentheses"
            hint = "`augury fmt` writes the parentheses"
            self.findings.add("W301", message, node.span, Note(f"it reads as {show_node(node)}"), hint=hint)


def _no_pattern(node: s.Node) -> tuple[str, str, str | None]:
    """What is wrong with something that stands where an event is expected, and what to do with it."""
    shown = show_node(node)
    expected = f"`{shown}` stands where an event is expected"
    match node:
        case s.BareName():
            hint = "a relation of labels is a literal of its own, or joined with others by `and` or `or`"
            return "E227", f"`{shown}` is a label of the rule, where an event is expected", hint
        case s.Quantified() | s.Binary():
            hint = "give the run a rule of its own, and use its event here"
            return "E232", "a run stands inside another pattern, an absence or a collect", hint
        case s.Holding():
            return "E277", f"`{shown}` stands where an event is expected", _HOLDING
        case Var():
            hint = f"write `{shown}()` for the event, or begin its name with a small letter"
            return "E226", f"`{shown}` is a variable where an event is expected", hint
        case s.Labelled():
            hint = "write `o: order(N), s: shipped(N), o before s`"
            return "E227", "a label names a literal of its own, not a part of a pattern", hint
        case Wild():
            return "E226", expected, "`_` stands for an argument; name the event"
        case s.Not():
            hint = f"write `NOT({show_node(node.negated)}).[a, b]` or `while w: not {show_node(node.negated)}`"
            return "E214", "an event cannot be negated on its own: absence needs an interval", hint
        case s.Group():
            return "E228", "one pattern is expected here, not a list of literals", "join patterns with AND or SEQ"
        case s.Chain() | s.Arith() if node.span.text.startswith("@"):
            return "E228", expected, "a calendar time stands in quotes: @'2026-01-31'"
        case s.Arith(op="//"):
            return "E228", expected, "a comment begins with `%` or `#`"
        case s.Arith(op="+" | "*", args=(s.CallTerm() | s.BareName() as part, s.CallTerm() | s.BareName() as other)):
            form = f"`{show_node(part)}{node.op} NEXT {show_node(other)}`"
            return "E228", expected, f"a quantifier stands behind its part, and an operator behind it: {form}"
        case s.Arith(op="+" | "*", args=(s.BareName() as part, rest)):
            hint = f"a quantifier stands behind the arguments: `{show_node(part)}({show_node(rest)}){node.op}`"
            return "E228", expected, hint
        case s.Chain():
            return "E228", expected, "a condition follows WHERE, or stands as a literal of its own after a comma"
        case s.WithinSet():
            return "E228", expected, f"the window of a pattern is written `(…).{show_node(node.length)}`"
        case Const(value=str()):
            return "E228", expected, "an event is a name without quotes"
    return "E228", expected, None
