"""The description of a run, as the generator of random runs writes it and as `run_answers` reads it.

Nothing here is shared with the parser or the algebra of the package. `Spec.text` is the program.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from augury.core.model import Value

# Terms


@dataclass(frozen=True)
class Num:
    value: int

    @property
    def text(self) -> str:
        return str(self.value)


@dataclass(frozen=True)
class Name:
    """A variable."""

    name: str

    @property
    def text(self) -> str:
        return self.name


@dataclass(frozen=True)
class Time:
    """`start(l)` or `end(l)`."""

    label: str
    edge: str

    @property
    def text(self) -> str:
        return f"{self.edge}({self.label})"


@dataclass(frozen=True)
class Prev:
    of: Term
    default: Term | None = None

    @property
    def text(self) -> str:
        return f"prev({self.of.text})" if self.default is None else f"prev({self.of.text}, {self.default.text})"


@dataclass(frozen=True)
class Total:
    """An aggregate over the iterations of a part; without arguments it counts those of the part's label."""

    function: str
    args: tuple[Term, ...]
    part: int
    label: str = ""
    where: Compare | None = None  # which iterations count

    @property
    def text(self) -> str:
        where = "" if self.where is None else f" where {self.where.text}"
        return f"{self.function}({', '.join(a.text for a in self.args) or self.label}{where})"

    @property
    def terms(self) -> tuple[Term, ...]:
        return (*self.args, *(() if self.where is None else self.where.terms))


@dataclass(frozen=True)
class Apply:
    op: str
    left: Term
    right: Term

    @property
    def text(self) -> str:
        left, right = (f"({t.text})" if isinstance(t, Apply) else t.text for t in (self.left, self.right))
        return f"{left} {self.op} {right}"


Term: TypeAlias = Num | Name | Time | Prev | Total | Apply


def walk(term: Term) -> Iterator[Term]:
    yield term
    match term:
        case Apply():
            yield from walk(term.left)
            yield from walk(term.right)
        case Prev():
            yield from walk(term.of)
            if term.default is not None:
                yield from walk(term.default)
        case Total():
            for arg in term.terms:
                yield from walk(arg)


# Conditions


@dataclass(frozen=True)
class Compare:
    op: str
    left: Term
    right: Term

    @property
    def terms(self) -> tuple[Term, ...]:
        return self.left, self.right

    @property
    def text(self) -> str:
        return f"{self.left.text} {self.op} {self.right.text}"


@dataclass(frozen=True)
class Let:
    """`D = X + 1` where nothing else binds D."""

    name: str
    value: Term

    @property
    def terms(self) -> tuple[Term, ...]:
        return (self.value,)

    @property
    def text(self) -> str:
        return f"{self.name} = {self.value.text}"


@dataclass(frozen=True)
class Holds:
    """A static predicate: `size(X, Z)`. It binds `name`, the last argument; the others are needed."""

    predicate: str
    terms: tuple[Term, ...]
    name: str

    @property
    def text(self) -> str:
        return f"{self.predicate}({', '.join([*(t.text for t in self.terms), self.name])})"


Condition: TypeAlias = Compare | Let | Holds


@dataclass(frozen=True)
class Asked:
    """A condition; `owner` is the repeated part of whose every iteration it is asked, None if it is asked once."""

    condition: Condition
    owner: int | None = None


# Runs


@dataclass(frozen=True)
class Atom:
    """`r(I, X)`: a variable, a constant or `_` for the key and for the number."""

    type: str
    key: str
    value: str

    @property
    def text(self) -> str:
        return f"{self.type}({self.key}, {self.value})"


@dataclass(frozen=True)
class AbsentSpec:
    """`NOT(r(I, N1))` to the left of a part; `condition` compares its number with something of the parts before."""

    atom: Atom
    condition: Compare | None = None
    outside: bool = False  # whether the condition stands behind the chain

    @property
    def text(self) -> str:
        inside = "" if self.condition is None or self.outside else f" WHERE {self.condition.text}"
        return f"NOT({self.atom.text}{inside})"


@dataclass(frozen=True)
class PartSpec:
    """A part: its atoms (several are joined by OR), how often it comes, the operator to its left, its label."""

    atoms: tuple[Atom, ...]
    least: int
    most: int | None
    link: str
    label: str = ""
    by: str = ""  # the operator between iterations, where it is said
    iterates: bool = False  # written `{1}`
    absent: tuple[AbsentSpec, ...] = ()

    @property
    def repeats(self) -> bool:
        return self.iterates or self.most is None or self.most > 1

    @property
    def var(self) -> str:
        """The variable of the number, if there is one."""
        value = self.atoms[0].value
        return value if value[0].isupper() else ""

    @property
    def text(self) -> str:
        inner = " OR ".join(a.text for a in self.atoms)
        if self.label:
            inner = f"{self.label}: {f'({inner})' if len(self.atoms) > 1 else inner}"
        sign = {(1, 1): "{1}" if self.iterates else "", (0, 1): "?", (1, None): "+", (0, None): "*"}.get(
            (self.least, self.most)
        )
        if sign is None:
            many = "," if self.most is None else f",{self.most}"
            sign = f"{{{self.least}{'' if self.most == self.least else many}}}"
        text = f"({inner}){sign}" if self.label or len(self.atoms) > 1 else inner + sign
        return f"({text} BY {self.by})" if self.by else text


@dataclass(frozen=True)
class Spec:
    """A run. The head has the key, the variables of parts that do not repeat, and further terms."""

    parts: tuple[PartSpec, ...]
    per: str  # the text after WHERE
    key: bool
    window: int | None
    asked: tuple[Asked, ...]
    results: tuple[Term, ...]
    which: str = "ALL"
    skip: str = ""
    facts: dict[str, list[tuple[Value, ...]]] = field(default_factory=dict)
    rules: tuple[str, ...] = ()  # that derive events of the run from others
    types: tuple[str, ...] = ("r", "r", "q", "q", "u")  # of its inputs, the frequent ones several times

    def owns(self, part: int, name: str) -> bool:
        """Whether a variable of a part is each iteration's own."""
        return self.parts[part].repeats and not any(p.var == name for p in self.parts[:part])

    @property
    def plain(self) -> list[str]:
        """The variables of parts that have one value in a match."""
        names = [p.var for n, p in enumerate(self.parts) if p.var and not self.owns(n, p.var)]
        return list(dict.fromkeys(names))

    @property
    def text(self) -> str:
        chain = self.parts[0].text
        for part in self.parts[1:]:
            chain += "".join(f" {part.link} {text}" for text in (*(absent.text for absent in part.absent), part.text))
        body = f"({chain}).{self.window}" if self.window is not None else chain
        asked = [a.condition.text for a in self.asked]
        asked += [x.condition.text for p in self.parts for x in p.absent if x.condition and x.outside]
        where = f" WHERE ({', '.join(asked)})" if asked else ""
        head = [*(["I"] if self.key else []), *self.plain, *(t.text for t in self.results)]
        tail = " ".join(x for x in (self.per, "" if self.which == "ALL" else self.which, self.skip) if x)
        rule = f"e({', '.join(head)}) <- {body}{where}{' ' + tail if tail else ''}."
        used = {a.condition.predicate for a in self.asked if isinstance(a.condition, Holds)}
        rows = [(name, row) for name in sorted(used) for row in self.facts[name]]
        facts = [f"{name}({', '.join(map(str, row))})." for name, row in rows]
        return "\n".join([*facts, *self.rules, rule])
