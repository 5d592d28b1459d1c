"""Syntax tree to text, such that reading the text gives the tree again. `augury fmt` is this printer."""

from __future__ import annotations

import re
from typing import assert_never

from augury.algebra.nodes import ALL_COLLECTED
from augury.algebra.relations import OPERATORS, RELATIONS
from augury.algebra.sparql_conditions import KNOWN_PREFIXES
from augury.algebra.terms import Const, Var, Wild
from augury.core.model import Iri, show_value
from augury.language.rules import syntax as s

WIDTH = 100
# Binding strength, loosest first; a looser part inside a tighter place gets parentheses.
_EXPR, _PATTERN, _COMPARISON, _SUM, _PRODUCT, _UNARY, _POWER, _POSTFIX = range(8)
_ARITH = {"+": _SUM, "-": _SUM, "*": _PRODUCT, "/": _PRODUCT, "//": _PRODUCT, "mod": _PRODUCT, "**": _POWER}
_LABEL_RELATIONS = {relation.upper() for relation in RELATIONS} - OPERATORS.keys()

# Behind a sign these words go on with a run: `X + (seq(Y))` adds what a function gives, `X + seq (Y)` is a repetition.
_GOES_ON = re.compile(r"(next|then|seq|where|or|and|not|par|per)\b", re.IGNORECASE)


class Printer:
    """Prints with the prefixes that are declared so far; `explicit` puts parentheses around every operand."""

    def __init__(self, explicit: bool = False, width: int = WIDTH) -> None:
        self.explicit, self.width = explicit, width
        self.prefixes = dict(KNOWN_PREFIXES)

    def module(self, module: s.Module) -> str:
        lines: list[str] = []
        for statement in module.statements:
            comments = statement.comments
            if comments.blank and lines:
                lines.append("")
            lines.extend(comments.before)
            text = self.statement(statement) + "."
            lines.append(f"{text}  {comments.after}" if comments.after else text)
        if module.trailing:
            lines.extend([*([""] if lines else []), *module.trailing])
        return "\n".join(lines) + "\n" if lines else ""

    def statement(self, statement: s.Statement) -> str:
        match statement:
            case s.Include():
                return f'include "{_escape(statement.path)}"'
            case s.PrefixDecl():
                self.prefixes[statement.name] = statement.iri
                return f"prefix {statement.name}: <{statement.iri}>"
            case s.EventDecl():
                return f"event {self.name(statement.name)}({self._attributes(statement.attributes)})"
            case s.StaticDecl():
                return f"static {self.name(statement.name)}({self._attributes(statement.attributes)})"
            case s.FunctionDecl():
                result = "" if statement.result == "any" else f": {statement.result}"
                return f"function {statement.name}({self._attributes(statement.attributes)}){result}"
            case s.PolicyDecl():
                return f"policy {self.policy(statement.policy)}"
            case s.TickDecl():
                return f"tick {self.node(statement.length)}"
            case s.OutputDecl():
                return f"output {', '.join(self.name(n.text) for n in statement.names)}"
            case s.RuleStatement():
                tails = [self._choice(statement.choice)] if statement.choice else []
                tails += [f"POLICY {self.policy(statement.policy)}"] if statement.policy else []
                tails += [self._top(statement.top)] if statement.top else []
                tails += [self._at_most(statement.at_most)] if statement.at_most else []
                tail = " ".join(tails)
                word = {"event": "", "fact": "fact ", "latest": "fact latest ", "no fact": "fact not "}[statement.makes]
                key = "" if statement.key is None else f" PER ({', '.join(v.name for v in statement.key)})"
                since = statement.since
                start = "" if since is None else " SINCE END" if since == "END" else f" SINCE {self.node(since, _SUM)}"
                return self._rule(
                    statement.label, statement.head, f"{key}{start} <-".strip(), statement.body, tail, word
                )
            case s.StaticRule():
                if not statement.body:
                    return self._labelled(statement.label, self.node(statement.head))
                return self._rule(statement.label, statement.head, ":-", statement.body, "")
            case _:
                assert_never(statement)

    def _labelled(self, label: str | None, text: str) -> str:
        return f"rule {label}: {text}" if label else text

    def _attributes(self, attributes: tuple[s.AttributeDecl, ...]) -> str:
        columns = (f' from "{_escape(a.column)}"' if a.column else "" for a in attributes)
        return ", ".join(f"{a.name}: {a.type}{column}" for a, column in zip(attributes, columns, strict=True))

    def _rule(
        self, label: str | None, head: s.Node, arrow: str, body: tuple[s.Node, ...], tail: str, word: str = ""
    ) -> str:
        start = f"{self._labelled(label, word + self.node(head))} {arrow}"
        literals = [self.node(literal) for literal in body]
        line = " ".join([start, ", ".join(literals), *([tail] if tail else [])])
        if len(line) < self.width:
            return line
        if len(body) == 1 and isinstance(body[0], s.Where):
            # Left-leaning chains of WHERE open at their first WHERE.
            pattern, condition = self.node(body[0].pattern, _PATTERN), self.node(body[0].condition)
            literals = [f"{pattern}\n    WHERE {condition}"]
        lines = [start, ",\n".join(f"    {text}" for text in literals)]
        return "\n".join([*lines, *([f"    {tail}"] if tail else [])])

    def _choice(self, choice: s.Choice) -> str:
        skip = choice.skip
        words = [
            "" if choice.per is None else f"PER ({', '.join(v.name for v in choice.per)})",
            choice.which or "",
            "" if skip is None else f"SKIP {skip.to}" if skip.label is None else f"SKIP {skip.to} {skip.label}",
        ]
        return " ".join(word for word in words if word)

    def policy(self, policy: s.PolicyClause) -> str:
        ties = f" by {policy.by}" if policy.by else f" {policy.ties}" if policy.ties != "longest" else ""
        per = f" per ({', '.join(policy.per)})" if policy.per else ""
        return policy.name + ties + per

    def name(self, name: str) -> str:
        """A name that is an IRI goes back to its prefix."""
        for prefix, iri in self.prefixes.items():
            if name.startswith(iri) and re.fullmatch(r"[A-Za-z_][\w-]*", name[len(iri) :]):
                return f"{prefix}:{name[len(iri) :]}"
        return name

    def node(self, node: s.Node, position: int = _EXPR) -> str:
        level, text = self._node(node)
        return f"({text})" if level < position else text

    def _args(self, args: tuple[s.Node, ...]) -> str:
        """Arguments; of an aggregate, the last one may have a condition."""
        texts = (
            f"{self.node(a.pattern, _PATTERN)} where {self.node(a.condition)}"
            if isinstance(a, s.Where)
            else self.node(a)
            for a in args
        )
        return ", ".join(texts)

    def _node(self, node: s.Node) -> tuple[int, str]:
        """The text and how tightly it binds."""
        match node:
            case Var():
                return _POSTFIX, node.name
            case Wild():
                return _POSTFIX, "_"
            case Const(value=Iri() as iri):
                short = self.name(iri.text)
                return _POSTFIX, short if short != iri.text else str(iri)
            case Const(value=int() | float() as number) if not isinstance(number, bool) and number < 0:
                return _UNARY, show_value(number)
            case Const():
                return _POSTFIX, show_value(node.value)
            case s.BareName():
                return _POSTFIX, node.text
            case s.GraphCall():
                return _POSTFIX, node.text
            case s.CallTerm():
                return (
                    _POSTFIX,
                    f"{self.name(node.name)}({'distinct ' if node.distinct else ''}{self._args(node.args)})",
                )
            case s.Arith() if len(node.args) == 1:
                return _UNARY, f"-{self.node(node.args[0], _POWER)}"
            case s.Arith():
                level = _ARITH[node.op]
                at_left, at_right = (_POSTFIX, _UNARY) if node.op == "**" else (level, level + 1)
                left, right = self.node(node.args[0], at_left), self.node(node.args[1], at_right)
                return level, f"{left} {node.op} {f'({right})' if _GOES_ON.match(right) else right}"
            case s.Chain():
                parts = [self.node(node.operands[0], _SUM)]
                for op, operand in zip(node.ops, node.operands[1:], strict=True):
                    parts += [op, self.node(operand, _SUM)]
                return _COMPARISON, " ".join(parts)
            case s.Among():
                word = "not in" if node.negated else "in"
                return _COMPARISON, f"{self.node(node.value, _SUM)} {word} ({self._args(node.options)})"
            case s.Between():
                value, low, high = (self.node(n, _SUM) for n in (node.value, node.low, node.high))
                return _COMPARISON, f"{value} between {low} and {high}"
            case s.Binary():
                return _PATTERN, self._binary(node)
            case s.Where():
                return _EXPR, f"{self.node(node.pattern, _PATTERN)} WHERE {self.node(node.condition)}"
            case s.Filtered():
                return _EXPR, f"where {self.node(node.condition)}"
            case s.Window():
                return _POSTFIX, f"({self.node(node.pattern)}).{self.node(node.length)}"
            case s.Power():
                tail = " CONSECUTIVE" if node.consecutive else ""
                return _POWER, f"{self.node(node.pattern, _POSTFIX)} ^ {node.count}{tail}"
            case s.Quantified():
                text = f"{self._part(node.pattern)}{_sign(node)}"
                return _POSTFIX, text if node.by is None else f"({text} BY {node.by})"
            case s.Not(between=None):
                return _UNARY, f"not {self.node(node.negated, _UNARY)}"
            case s.Was():
                return _UNARY, f"was {self.node(node.atom, _UNARY)}"
            case s.Holding():
                return _UNARY, f"holding {self.node(node.atom, _UNARY)}"
            case s.Not():
                assert node.between is not None
                policy = f"[{self.policy(node.policy)}]" if node.policy else ""
                first, second = (self.node(n) for n in node.between)
                return _UNARY, f"NOT{policy}({self.node(node.negated)}).[{first}, {second}]"
            case s.Group():
                return _POSTFIX, "{" + self._args(node.items) + "}"
            case s.WithinSet():
                return _COMPARISON, f"{self.node(node.labels, _SUM)} within {self.node(node.length)}"
            case s.Labelled():
                return _EXPR, f"{node.label}: {self.node(node.body)}"
            case s.While(collect=False):
                return _EXPR, f"while {node.window}: not {self.node(node.body)}"
            case s.While():
                return _EXPR, f"while {node.window}: {self._collect(node)}"
            case s.Last() if node.count == ALL_COLLECTED:
                return _EXPR, f"all: {self._collect(node)}"
            case s.Last():
                return _EXPR, f"{'exactly' if node.exactly else 'last'} {node.count}: {self._collect(node)}"
            case s.Cut():
                return _EXPR, "!"
            case _:
                assert_never(node)

    def _collect(self, node: s.While | s.Last) -> str:
        label = f"{node.label}: " if node.label else ""
        return f"collect {label}{self.node(node.body)}{' or none' if node.none else ''}"

    def _top(self, top: s.TopClause) -> str:
        words = [
            f"TOP {'ALL' if top.count is None else top.count} BY {self.node(top.by, _SUM)}",
            "ASC" if top.ascending else "",
            "WITH TIES" if top.ties else "",
            f"PER ({', '.join(v.name for v in top.per)})" if top.per else "",
            f"AS {top.place.name}" if top.place else "",
        ]
        return " ".join(word for word in words if word)

    def _at_most(self, at_most: s.AtMostClause) -> str:
        words = [
            "ONCE" if at_most.count == 1 else f"AT MOST {at_most.count}",
            f"PER ({', '.join(v.name for v in at_most.per)})" if at_most.per else "",
            f"EVERY {self.node(at_most.every)}" if at_most.every else "",
        ]
        return " ".join(word for word in words if word)

    def _part(self, node: s.Node) -> str:
        """A part of a run that is quantified: anything but an event in parentheses."""
        return self.node(node) if isinstance(node, s.CallTerm | s.BareName) else f"({self.node(node)})"

    def _run(self, node: s.Binary) -> str:
        """A chain of NEXT, THEN and SEQ: it needs no parentheses, mixed or not."""
        texts = [self._operand(s.run_operands(node)[0])]
        for part in s.run_operators(node):
            policy = f"[{self.policy(part.policy)}]" if part.policy else ""
            texts.append(f"{part.op}{policy} {self._operand(part.right)}")
        return " ".join(texts)

    def _operand(self, node: s.Node) -> str:
        if isinstance(node, s.Not) and node.between is None:
            return f"NOT({self.node(node.negated)})"
        return self.node(node, _COMPARISON)

    def _alternative(self, node: s.Node) -> str:
        """An operand, perhaps an alternative of a run with a label: `v: b(I)`."""
        if isinstance(node, s.Labelled):
            return f"{node.label}: {self.node(node.body, _COMPARISON)}"
        return self.node(node, _COMPARISON)

    def _binary(self, node: s.Binary) -> str:
        if s.is_run(node):
            return self._run(node)
        op = node.op.lower() if node.op in _LABEL_RELATIONS else node.op
        operands: list[str] = []
        part: s.Node = node
        while isinstance(part, s.Binary) and part.op == node.op:
            policy = f"[{self.policy(part.policy)}]" if part.policy else ""
            operands.append(f"{op}{policy} {self._alternative(part.right)}")
            part = part.left
        # Mixed operators keep their parentheses, so that the text says its own reading.
        first = f"({self.node(part)})" if isinstance(part, s.Binary) else self.node(part, _PATTERN)
        operands.reverse()
        if self.explicit:  # every step but the last stands in parentheses
            return f"{'(' * (len(operands) - 1)}{first} {') '.join(operands)}"
        return " ".join([first, *operands])


def _sign(node: s.Quantified) -> str:
    """The quantifier as it is written."""
    match node.least, node.most:
        case 1, None:
            return "+"
        case 0, None:
            return "*"
        case 0, 1:
            return "?"
        case least, None:
            return f"{{{least},}}"
        case least, most:
            return f"{{{least}}}" if least == most else f"{{{least},{most}}}"


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def show_module(module: s.Module) -> str:
    return Printer().module(module)


def show_node(node: s.Node) -> str:
    return Printer().node(node)
