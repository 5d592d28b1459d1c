"""Types, inferred from declarations and use; what cannot be both is reported with both places.

Columns of predicates and variables of rules that must hold the same value form a class. Each use says which kinds the
class may have; a class that no kind is left for is an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import assert_never

from augury.algebra.kinds import of_kind
from augury.algebra.nodes import (
    ANY_VALUE,
    AnyOf,
    Clause,
    Compare,
    Condition,
    Holds,
    NoneInside,
    Relates,
    Relative,
    Rule,
    Run,
    Scan,
    Spans,
    Unless,
    conditions,
    walk_condition,
)
from augury.algebra.plan import Attribute, Plan, static_atoms
from augury.algebra.terms import Aggregate, Apply, Build, Const, Expr, Moment, Prev, Var, Wild, show
from augury.core.clock import Kind
from augury.core.errors import Findings, Note, Span
from augury.core.model import show_value, type_name

Kinds = frozenset[str]
_ALL: Kinds = frozenset({"number", "string", "bool", "timestamp", "duration", "iri", "term", "list"})
_NUMBER: Kinds = frozenset({"number"})
_ARITHMETIC: Kinds = frozenset({"number", "timestamp", "duration"})
_UNIT = "a number compared with a duration needs a unit, such as 5s"


def kinds_of(type: str) -> Kinds:
    """The kinds of a declared type; integers and floats are one kind, because 1 and 1.0 are one value."""
    return _ALL if type == "any" else _NUMBER if type in ("int", "float", "number") else frozenset({type})


@dataclass
class _TypeUse:
    kinds: Kinds
    span: Span
    why: str
    firm: bool
    declared: bool = False


@dataclass
class _Classes:
    """Union-find over columns and variables, with the uses of each class."""

    parent: dict[object, object] = field(default_factory=dict)
    uses: dict[object, list[_TypeUse]] = field(default_factory=dict)

    def find(self, item: object) -> object:
        while (above := self.parent.get(item, item)) != item:
            item = self.parent[item] = self.parent.get(above, above)  # the way up is halved each time
        return item

    def join(self, x: object, y: object) -> None:
        first, second = self.find(x), self.find(y)
        if first != second:
            self.parent[second] = first
            self.uses.setdefault(first, []).extend(self.uses.pop(second, []))

    def use(self, item: object, kinds: Kinds, span: Span, why: str, firm: bool = True, declared: bool = False) -> None:
        if kinds != _ALL:
            self.uses.setdefault(self.find(item), []).append(_TypeUse(kinds, span, why, firm, declared))


def check_types(plan: Plan, findings: Findings, clock: Kind | None = None) -> None:
    """Reports types that do not fit. With a clock, times and durations are its own; without, either clock's."""
    _Types(plan, findings, clock).report()


def check_subjects(plan: Plan, findings: Findings, predicates: Iterable[str] = ()) -> None:
    """A subject of a property is an IRI, which no string equals; `predicates` have facts that belong to no graph."""
    aside = {
        *predicates,
        *plan.static,
        *plan.queries,
        *(clause.name for clause in plan.clauses),
        *(rule.makes for rule in plan.rules),
    }
    classes = _Types(plan, Findings(), None).classes
    for atom, asking in static_atoms(plan):
        subject = atom.args[0] if len(atom.args) == 2 and ":" in atom.name and atom.name not in aside else None
        if not isinstance(subject, Var) or asking is None:
            continue
        uses = classes.uses.get(classes.find((("rule", asking.label), subject.name)), [])
        text = next((use for use in uses if use.declared and use.kinds == {"string"} and use.span in asking.span), None)
        if text is not None:
            message = f"`{subject.name}` is a string, and the subject of a property is an IRI: they are never equal"
            hint = "declare it as `iri`, and text in the data is read as IRIs"
            findings.add("W310", message, subject.span, Note(text.why, text.span), hint=hint)


class _Types:
    def __init__(self, plan: Plan, findings: Findings, clock: Kind | None) -> None:
        self.plan, self.findings = plan, findings
        self.clock = "logical" if plan.tick is not None else clock
        self.classes = _Classes()
        self.declared: dict[tuple[str, str, int, int], Attribute] = {}
        for name, attributes in plan.declared.items():
            self._declare("event", name, attributes)
        for name, attributes in plan.static.items():
            self._declare("static", name, attributes)
        for rule in plan.rules:
            self._rule(rule)
        self._clauses(plan.clauses)

    def _declare(self, what: str, name: str, attributes: tuple[Attribute, ...]) -> None:
        for i, attribute in enumerate(attributes):
            self.declared[what, name, len(attributes), i] = attribute

    def _rule(self, rule: Rule) -> None:
        scope = ("rule", rule.label)
        for node in rule.nodes:
            for scan in of_kind([node], Scan):
                what, name = ("event", scan.type) if scan.held is None else ("static", scan.held[0])
                self._atom(what, name, scan.args, scope)
            for run in of_kind([node], Run):
                self._aggregates({result.name: result.aggregate for result in run.results}, scope)
            self._where(conditions(node), scope)
        self._aggregates(rule.totals, scope)
        self._where(rule.outer_conditions, scope)
        if rule.since is not None and rule.since != "END":
            self._since(rule.since, scope)
        for i, arg in enumerate(rule.args):
            if isinstance(arg, Const) and arg.value == ANY_VALUE:
                continue
            what, name = ("static", rule.makes) if rule.makes else ("event", rule.type)
            self._column(what, name, len(rule.args), i, arg, scope, computed=True)

    def _aggregates(self, named: Mapping[str, Aggregate], scope: tuple[str, str]) -> None:
        for name, aggregate in named.items():
            self.classes.use((scope, name), self._kinds(aggregate, scope), aggregate.span, "it aggregates")

    def _since(self, since: Expr, scope: tuple[str, str]) -> None:
        """An event starts at a time."""
        kinds = self._kinds(since, scope)
        times = {"logical": _NUMBER, "timestamp": frozenset({"timestamp"})}.get(
            self.clock or "", _NUMBER | {"timestamp"}
        )
        if not kinds & times:
            message = f"an event starts at a time, and {_described(since)} is {_a(kinds)}"
            hint = "write `SINCE start(o)`, `SINCE end(o) - 5min` or `SINCE END`"
            self.findings.add("E263", message, since.span, hint=hint)

    def _clauses(self, clauses: Iterable[Clause]) -> None:
        for number, clause in enumerate(clauses):
            scope = ("clause", str(number))
            self._atom("static", clause.name, clause.args, scope, fact=not clause.body)
            self._where(clause.body, scope)

    def _atom(self, what: str, name: str, args: tuple[Expr, ...], scope: tuple[str, str], fact: bool = False) -> None:
        for i, arg in enumerate(args):
            if not (fact and (what, name, len(args), i) not in self.declared):  # mixed facts are fine
                self._column(what, name, len(args), i, arg, scope)

    def _column(
        self, what: str, name: str, arity: int, i: int, arg: Expr, scope: tuple[str, str], computed: bool = False
    ) -> None:
        column = (what, name, arity, i)
        declared = self.declared.get(column)
        if declared is not None:
            kinds = kinds_of(declared.type)
            why = f"`{name}` declares `{declared.name}` as {declared.type}"
            if isinstance(arg, Var):
                self.classes.use((scope, arg.name), kinds, arg.span, why, declared=True)
            elif not isinstance(arg, Wild):
                arg_kinds = self._kinds(arg, scope)
                if not arg_kinds & kinds and kinds != _ALL and not (isinstance(arg, Const) and arg.value is None):
                    span = arg.span
                    self.findings.add("E601", f"{_described(arg)} does not fit: {why}", span)
            return
        match arg:
            case Var():
                self.classes.join(column, (scope, arg.name))
            case Const() if arg.value is not None:
                self.classes.use(column, _kind(arg), arg.span, f"it is {show_value(arg.value)}", firm=False)
            case Apply() | Aggregate():
                self.classes.use(column, self._kinds(arg, scope), arg.span, "it is computed")
            case Build():
                if computed:
                    self._kinds(arg, scope)
                self.classes.use(column, frozenset({"term"}), arg.span, "it is a nested term", firm=False)

    def _where(self, where: Iterable[Condition], scope: tuple[str, str]) -> None:
        for condition in (part for whole in where for part in walk_condition(whole)):
            match condition:
                case Holds() | Unless():
                    self._atom("static", condition.name, condition.args, scope)
                case Compare():
                    self._compare(condition, scope)
                case Relative():
                    if not isinstance(condition.length, int):
                        self._window_length(condition, condition.length, scope)
                case AnyOf() | Relates() | Spans() | NoneInside():
                    pass
                case _:
                    assert_never(condition)

    def _compare(self, condition: Compare, scope: tuple[str, str]) -> None:
        left, right = self._kinds(condition.left, scope), self._kinds(condition.right, scope)
        ordered = condition.op not in ("=", "!=")
        if not left & right:
            unit = left | right == {"number", "duration"}
            self.findings.add(
                "E601",
                f"{_described(condition.left)} ({_listed(left)}) is compared with {_described(condition.right)} ({_listed(right)})",
                condition.span,
                hint=_UNIT if unit else None,
            )
            return
        match condition.left, condition.right:
            case Var(name=x), Var(name=y):
                if condition.op != "!=":
                    self.classes.join((scope, x), (scope, y))
            case (Var() as var, other) | (other, Var() as var):
                kinds = right if var is condition.left else left
                firm = ordered or not isinstance(other, Const)
                self.classes.use((scope, var.name), kinds, var.span, f"it is compared with {_described(other)}", firm)

    def _window_length(self, window: Relative, length: Expr, scope: tuple[str, str]) -> None:
        """A window lasts for a duration, or until a time; on a logical clock both may be numbers."""
        kinds = frozenset({"timestamp" if window.kind == "until" else "duration"})
        kinds |= _NUMBER if self.clock != "timestamp" else frozenset()
        use = f"the window `{window.label}` {'ends then' if window.kind == 'until' else 'lasts so long'}"
        if isinstance(length, Var):
            self.classes.use((scope, length.name), kinds, length.span, use)
            return
        length_kinds = self._kinds(length, scope)
        if not length_kinds & kinds:
            message = f"{_described(length)} ({_listed(length_kinds)}) is not {_listed(kinds)}"
            self.findings.add("E601", message, length.span or window.span, Note(use, window.span))

    def _kinds(self, expr: Expr, scope: tuple[str, str]) -> Kinds:
        """The kinds that an expression may have; uses of variables inside are noted."""
        match expr:
            case Const(value=None):
                return _ALL
            case Const():
                return self._durations(_kind(expr))
            case Moment():
                match self.clock:
                    case "logical":
                        return _NUMBER
                    case "timestamp":
                        return frozenset({"duration" if expr.which in ("duration", "length") else "timestamp"})
                    case _:
                        return frozenset(
                            {"number", "duration" if expr.which in ("duration", "length") else "timestamp"}
                        )
            case Build():
                for arg in expr.args:
                    self._kinds(arg, scope)
                return frozenset({"term"})
            case Prev():
                of = self._kinds(expr.of, scope)
                default = of if expr.default is None else self._kinds(expr.default, scope)
                if not of & default:
                    both = f"{_described(expr.of)} and its default {_described(expr.default or expr.of)}"
                    self.findings.add("E601", f"{both} are of different types", expr.span)
                return of & default or of
            case Aggregate():
                row = self.plan.aggregates[expr.function]
                measures = row.argument == "number" and row.form is not None and row.form.durations
                takes = kinds_of(row.argument) | (frozenset({"duration"}) if measures else frozenset())
                kinds = [self._argument(a, takes, f"it is an argument of `{expr.function}`", scope) for a in expr.args]
                if measures and "duration" in kinds[0]:  # a sum or a mean of durations is one
                    return kinds[0] & {"duration"} | (kinds_of(row.result) if kinds[0] & _NUMBER else frozenset())
                return kinds_of(row.result)
            case Apply():
                return self._apply(expr, scope)
        return _ALL

    def _durations(self, kinds: Kinds) -> Kinds:
        """Beside a number, on a logical clock, a duration is a number of ticks."""
        return kinds if "duration" not in kinds or self.clock == "timestamp" else kinds | _NUMBER

    def _apply(self, expr: Apply, scope: tuple[str, str]) -> Kinds:
        row = self.plan.functions[expr.function]
        if expr.function in ("+", "-", "*", "/"):
            result = [
                self._argument(a, _ARITHMETIC, f"it is in a computation with `{expr.function}`", scope)
                for a in expr.args
            ]
            if expr.function == "-" and len(result) == 2 and all(f == {"timestamp"} for f in result):
                return frozenset({"duration"})
            return _NUMBER if all(f == _NUMBER for f in result) else _ARITHMETIC
        for i, arg in enumerate(expr.args):
            type = row.types[min(i, len(row.types) - 1)] if row.types else "any"
            self._argument(arg, kinds_of(type), f"it is an argument of `{expr.function}`", scope)
        return kinds_of(row.result)

    def _argument(self, arg: Expr, kinds: Kinds, why: str, scope: tuple[str, str]) -> Kinds:
        if isinstance(arg, Var):
            self.classes.use((scope, arg.name), kinds, arg.span, why)
            return kinds
        if isinstance(arg, Apply) and arg.function == "if":  # null is of any type
            self._kinds(arg.args[0], scope)
            chosen = [self._argument(a, kinds, why, scope) for a in arg.args[1:] if a != Const(None)]
            return frozenset().union(*chosen) or kinds
        result = self._kinds(arg, scope)
        if not result & kinds:
            self.findings.add(
                "E601",
                f"{_described(arg)} is {_a(result)}, but {why.removeprefix('it is ')} must be {_a(kinds)}",
                arg.span,
            )
        return result & kinds or kinds

    def report(self) -> None:
        for uses in self.classes.uses.values():
            firm = [u for u in uses if u.firm]
            weak = [u for u in uses if not u.firm]
            left, first = _ALL, None
            for use in firm:
                if not left & use.kinds:
                    self._conflict(use, first)
                    break
                left, first = left & use.kinds, (use if first is None or not use.kinds >= left else first)
            else:
                for use in weak:
                    if firm and not left & use.kinds:
                        self._conflict(use, first)
                        break

    def _conflict(self, use: _TypeUse, other: _TypeUse | None) -> None:
        if other is None:
            return
        # The declaration is taken as right; of two uses, the later one is shown first.
        first, second = sorted((use, other), key=lambda u: (u.declared, -u.span.start))
        message = f"{first.span.quoted} cannot be both {_a(first.kinds)} and {_a(second.kinds)}"
        hint = _UNIT if first.kinds | second.kinds == {"number", "duration"} else None
        self.findings.add("E601", message, first.span, Note(first.why), Note(second.why, second.span), hint=hint)


def _kind(const: Const) -> Kinds:
    return kinds_of(type_name(const.value))


def _described(expr: Expr) -> str:
    return f"`{show(expr)}`"


def _listed(kinds: Kinds) -> str:
    return " or ".join(sorted(kinds)) if kinds != _ALL else "anything"


def _a(kinds: Kinds) -> str:
    if kinds == _ARITHMETIC:
        return "a number or a time"
    return " or ".join(f"an {kind}" if kind == "iri" else f"a {kind}" for kind in sorted(kinds))


class TypesInWords:
    """The types of the variables of rules and of the columns of predicates, for those who read a program."""

    def __init__(self, plan: Plan) -> None:
        self._types = _Types(plan, Findings(), None)

    def variable(self, rule: str, name: str) -> str:
        """`float, as wind declares speed`; empty where nothing says what it is."""
        return self._of((("rule", rule), name))

    def column(self, what: str, name: str, arity: int, position: int) -> str:
        declared = self._types.declared.get((what, name, arity, position))
        return declared.type if declared is not None else self._of((what, name, arity, position)).partition(",")[0]

    def _of(self, item: object) -> str:
        uses = self._types.classes.uses.get(self._types.classes.find(item), [])
        declared = next((use for use in uses if use.declared), None)
        if declared is not None:
            return f"{declared.why.rpartition(' as ')[2]}, as {declared.why.rpartition(' as ')[0]}"
        kinds = frozenset.intersection(_ALL, *(use.kinds for use in uses))
        return _listed(kinds) if kinds != _ALL and kinds else ""
