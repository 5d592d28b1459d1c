"""Each type is a name with an arity: as declared, else as everywhere else."""

from __future__ import annotations

from augury.algebra.nodes import Rule, Scan, written
from augury.algebra.plan import Attribute, Plan, static_atoms
from augury.core.errors import Findings, Note, Span, Spelling, counted, misspelt

Uses = dict[str, list[tuple[int, Span]]]


def check_arity(plan: Plan, findings: Findings) -> None:
    heads: Uses = {}
    read: Uses = {}
    readers: dict[str, set[str]] = {}
    for rule in plan.rules:
        heads.setdefault(rule.type, []).append((len(rule.args), head_of(rule.span)))
        for scan in (scan for scan in scans(rule) if scan.held is None):
            read.setdefault(scan.type, []).append((len(scan.args), scan.span))
            readers.setdefault(scan.type, set()).add(rule.type)
    for name, uses in _merged(heads, read).items():
        _check_event(name, uses, plan, findings)
    defined = Spelling({*heads, *plan.declared})
    for name, uses in read.items():
        if name not in heads and name not in plan.declared and len(name) > 3:
            # `windy <- wind` is no misspelling: an event may be named after what it is made of.
            close = defined.misspelt(name, but=readers[name])
            _check_unknown(name, uses[0][1], close, plan, findings)
    _check_inputs({name: uses for name, uses in read.items() if name not in heads}, plan, findings)
    _check_static(plan, findings)


def head_of(rule: Span) -> Span:
    """The head of a rule or clause, without its label."""
    return rule.part(r"^(?:rule\s+\w+\s*:\s*)?(?:fact\s+(?:(?:not|latest)\s+(?!<-|←))?)?(?P<it>.*?)\s*(?:<-|←|:-|$)")


def scans(rule: Rule) -> list[Scan]:
    return [node for pattern in rule.patterns for node in written(pattern) if isinstance(node, Scan)]


def _merged(first: Uses, second: Uses) -> Uses:
    return {name: first.get(name, []) + second.get(name, []) for name in {**first, **second}}


def _check_event(name: str, uses: list[tuple[int, Span]], plan: Plan, findings: Findings) -> None:
    declared = plan.declared.get(name)
    arity, first = uses[0]
    for count, span in uses:
        if declared is not None:
            _check_declared(name, count, span, declared, findings)
        elif count != arity:
            message = f"`{name}` has {counted(count, 'argument')} here and {arity} elsewhere: these are two event types"
            findings.add("W302", message, span, Note("elsewhere", first))
            return


def _check_declared(name: str, count: int, span: Span, declared: tuple[Attribute, ...], findings: Findings) -> None:
    if count != len(declared):
        message = f"`{name}` has {counted(count, 'argument')} here, but is declared with {len(declared)}"
        hint = f"it is declared as `{name}({', '.join(a.name for a in declared)})`"
        findings.add("E206", message, span, hint=hint)


def _check_unknown(name: str, span: Span, close: str | None, plan: Plan, findings: Findings) -> None:
    if close is None or name in findings.unread:
        return
    hint = f"did you mean `{close}`? Otherwise declare it: `event {name}(…).`"
    if plan.declared:
        findings.add("E201", f"unknown event `{name}`", span, hint=hint)
    else:
        findings.add("W305", f"nothing derives `{name}`, so it is taken as an input", span, hint=hint)


def _check_inputs(read: Uses, plan: Plan, findings: Findings) -> None:
    """Two inputs whose names are one slip apart, the second read once: probably one was meant."""
    if plan.declared:
        return  # then an unknown name is an error already, where it is close to a known one
    earlier = Spelling()
    for name, uses in sorted(read.items(), key=lambda item: item[1][0][1].start):
        close = earlier.misspelt(name) if len(uses) == 1 and len(name) > 3 and name.isalpha() else None
        # An event may be named after another: order and orders, smoke and smoked.
        if close is not None and not (close.startswith(name) or name.startswith(close)):
            message = f"`{name}` and `{close}` are two inputs with almost one name"
            hint = f"did you mean `{close}`? Otherwise declare them: `event {name}(…).`"
            findings.add("W305", message, uses[0][1], Note("the other one", read[close][0][1]), hint=hint)
        earlier.add(name)


def _check_static(plan: Plan, findings: Findings) -> None:
    defined: dict[str, dict[int, Span]] = {}
    for clause in plan.clauses:
        defined.setdefault(clause.name, {}).setdefault(len(clause.args), clause.span)
    for name, places in defined.items():
        (first, elsewhere), *others = places.items()
        for arity, span in others if name not in plan.static else ():
            message = (
                f"`{name}` has {counted(arity, 'argument')} here and {first} elsewhere: these are two static predicates"
            )
            findings.add("W302", message, head_of(span), Note("elsewhere", head_of(elsewhere)))
    made = [rule for rule in plan.rules if rule.makes]
    for rule in made:
        defined.setdefault(rule.makes, {}).setdefault(len(rule.args), rule.span)
    held = [(*scan.held, scan.span) for rule in plan.rules for scan in scans(rule) if scan.held is not None]
    asked = {atom.name for atom, _ in static_atoms(plan)} | {name for name, _, _ in held}
    for rule in () if findings.errors else made:  # what is wrong may be what asks
        if rule.makes not in asked and rule.makes not in findings.unread:
            close = misspelt(rule.makes, sorted(asked))
            hint = f"did you mean `{close}`?" if close else "a condition asks for them: `… WHERE " + rule.makes + "(…)`"
            findings.add("W307", f"nothing asks for facts of `{rule.makes}`", head_of(rule.span), hint=hint)
    uses = [(clause.name, len(clause.args), head_of(clause.span)) for clause in plan.clauses]
    uses += [(rule.makes, len(rule.args), head_of(rule.span)) for rule in made]
    uses += [(atom.name, len(atom.args), atom.span.part(r"^(?:not\s+)?(?P<it>.*)")) for atom, _ in static_atoms(plan)]
    for name, arity, span in uses + held:
        declared = plan.static.get(name)
        if declared is not None:
            _check_declared(name, arity, span, declared, findings)
        elif name in defined and arity not in defined[name]:
            other, defined_at = next(iter(defined[name].items()))
            message = f"`{name}` has {counted(arity, 'argument')} here, but is defined with {other}"
            findings.add("E206", message, span, Note("defined here", head_of(defined_at)))
