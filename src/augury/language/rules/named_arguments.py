"""Arguments by name: `pay(card = C, amount = A)` for a declared type, all of them or none."""

from __future__ import annotations

from augury.algebra.terms import Const, Wild
from augury.core.errors import Findings, nearest
from augury.language.rules import syntax as s


def by_place(
    name: str,
    args: tuple[s.Node, ...],
    declared: s.EventDecl | s.StaticDecl | None,
    findings: Findings,
    in_head: bool = False,
) -> tuple[s.Node, ...]:
    """Arguments that are given by name in their places; what is left out is `_`, but a head gives all."""
    named = [(a.operands[0], a.operands[1]) for a in args if isinstance(a, s.Chain) and a.ops == ("=",)]
    chosen = [(key, value) for key, value in named if isinstance(key, s.BareName)]
    if not chosen:
        return args
    span = args[0].span.to(args[-1].span)
    if declared is None:
        hint = f"declare it, `event {name}({chosen[0][0].text}: any, …).`, or give the arguments by their places"
        findings.add("E261", f"`{name}` is not declared, so its arguments have no names", span, hint=hint)
        return (Wild(),) * len(args)
    places = {attribute.name: i for i, attribute in enumerate(declared.attributes)}
    if len(chosen) < len(args):
        findings.add("E261", "some arguments are given by name, some by place", span, hint="name all of them, or none")
        return (Wild(),) * len(places)
    result: dict[int, s.Node] = {}
    for key, value in chosen:
        if key.text not in places:
            close = nearest(key.text, places)
            hint = f"did you mean `{close}`?" if close else f"its arguments are {', '.join(places)}"
            findings.add("E261", f"`{name}` has no argument `{key.text}`", key.span, hint=hint)
        elif places[key.text] in result:
            findings.add("E261", f"the argument `{key.text}` is given twice", key.span)
        else:
            result[places[key.text]] = value
    missing = [attribute for attribute, i in places.items() if i not in result]
    if in_head and missing and findings.sound(span):
        hint = "an event that is derived has a value for each argument"
        findings.add("E261", f"the head leaves out {', '.join(f'`{m}`' for m in missing)}", span, hint=hint)
    remaining: s.Node = Const(None) if in_head else Wild(span)
    return tuple(result.get(i, remaining) for i in range(len(places)))
