"""What an editor shows of the word under the pointer, as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from augury.algebra.nodes import Rule
from augury.algebra.plan import Plan, once_a_plan
from augury.algebra.properties import all_properties
from augury.core.clock import show_duration
from augury.core.errors import Findings
from augury.editor.meanings import Names, builtin
from augury.editor.open_files import Document, NamePlace
from augury.editor.vocabulary import ALL_QUERY_WORDS, RULE_WORDS
from augury.explain.query_words import query_text
from augury.language.checks.inference import TypesInWords
from augury.language.rules import syntax as s
from augury.language.rules.show import show_node
from augury.language.spaseq import query_tree as q
from augury.language.spaseq.query_reader import read_query

Costs = Mapping[str, Mapping[str, Any]]  # by rule: what `augury profile --json` says of it
_WORD = re.compile(r"\w+")


@once_a_plan
def types_of(plan: Plan) -> TypesInWords:
    return TypesInWords(plan)


def word_at(text: str, offset: int) -> tuple[int, int]:
    """The word that an offset is in, or directly behind."""
    start = offset
    while start and (text[start - 1].isalnum() or text[start - 1] == "_"):
        start -= 1
    match = _WORD.match(text, start)
    return (start, match.end()) if match else (offset, offset)


class HoverTexts:
    """The texts of a document, with the names of its program and what its rules cost."""

    def __init__(self, document: Document, names: Names, costs: Costs = {}) -> None:
        self.document, self.names, self.costs = document, names, costs

    def of(self, name_place: NamePlace) -> str:
        """Of a name."""
        if self.document.is_query:
            return self._in_query(name_place)
        match name_place.name.meaning:
            case "predicate":
                return "\n\n".join(self._predicate(name_place))
            case "variable":
                return self._variable(name_place)
            case "label":
                return self._label(name_place)
            case "rule":
                rule = self._rule_at(name_place)
                return "\n\n".join(self._measures(rule)) if rule is not None else ""
            case "attribute":
                return f"attribute of `{name_place.name.owner}`"
        return ""

    def of_word(self, word: str) -> str:
        """Of a keyword or a function."""
        if self.document.is_query:
            upper = word.upper()
            if upper in ALL_QUERY_WORDS:
                about, example = ALL_QUERY_WORDS[upper]
                text = f"**{upper}** {about}\n```spaseq\n{example}\n```"
                checked = self.document.checked
                if upper in ("SELECT", "CONSTRUCT") and checked is not None and checked.plan.graph_queries:
                    text += f"\n\n```text\n{query_text(checked.plan.graph_queries[0])}\n```"
                return text
            return ""
        keyword = RULE_WORDS.get(word.lower())
        function = builtin(word)
        parts = [keyword.markdown] if keyword else []
        parts += [f"```aug\n{function}\n```\n{function.about}"] if function else []
        return "\n\n---\n\n".join(parts)

    # Predicates

    def _predicate(self, name_place: NamePlace) -> Iterator[str]:
        name, kind = name_place.name.name, self.names.kind_of(name_place.name)
        signature = self.names.signature(name)
        if kind == "term":
            yield f"nested term `{name}`"
            return
        title = {"event": "event", "static": "static predicate", "function": "function"}[kind]
        yield f"```aug\n{'' if kind == 'function' else kind + ' '}{self._typed(name_place, kind) or signature or name}\n```"
        if signature is not None and signature.about:
            yield signature.about
        rules = [rule for rule in self._rules() if rule.type == name or rule.makes == name]
        if kind == "event" and not rules and signature is None:
            yield f"an input {title}, which is not declared"
        for rule in rules[:5]:
            yield "\n\n".join(self._measures(rule))
        if len(rules) > 5:
            yield f"… and {len(rules) - 5} more rules"

    def _typed(self, name_place: NamePlace, kind: str) -> str:
        """A derived event with the types that follow for its arguments."""
        plan = self.document.checked.plan if self.document.checked else None
        if plan is None or name_place.name.arity is None or kind not in ("event", "static"):
            return ""
        declared = plan.declared if kind == "event" else plan.static
        if name_place.name.name in declared:
            return ""
        heads = [
            x for _, _, x in self.names.defining(name_place.name.name) if isinstance(x, s.RuleStatement | s.StaticRule)
        ]
        if not heads or not isinstance(heads[0].head, s.CallTerm):
            return ""
        parts = []
        for index, arg in enumerate(heads[0].head.args):
            type = types_of(plan).column(kind, name_place.name.name, len(heads[0].head.args), index)
            parts.append(f"{show_node(arg)}: {type}" if type else show_node(arg))
        return f"{name_place.name.name}({', '.join(parts)})"

    def _rules(self) -> tuple[Rule, ...]:
        return self.document.checked.plan.rules if self.document.checked else ()

    def _rule_at(self, name_place: NamePlace) -> Rule | None:
        """The rule of a statement, as it was checked last."""
        if name_place.statement is None:
            return None
        start = name_place.statement.start
        inside = [
            rule
            for rule in self._rules()
            if rule.span.source.name.endswith(self.document.path.name)
            and start <= rule.span.start < name_place.statement.end
        ]
        return inside[0] if inside else None

    def _measures(self, rule: Rule) -> Iterator[str]:
        """A rule's key, horizon and window, and what it cost."""
        checked = self.document.checked
        assert checked is not None
        properties = all_properties(checked.plan)[rule.label]
        horizon = {None: "without bound", 0: "nothing is kept"}.get(properties.horizon) or show_duration(
            properties.horizon or 0
        )
        longest = "any length" if properties.longest is None else f"at most {show_duration(properties.longest)}"
        key = ", ".join(properties.key) or "none: its events share no variable"
        rows = [
            f"rule `{rule.label}`",
            f"- window: its events last {longest}",
            f"- key: {key}",
            f"- horizon: {horizon}",
        ]
        rows += [f"- certain: {text}" for text in properties.certain_when]
        cost = self.costs.get(rule.label)
        if cost is not None:
            rows.append(
                f"- cost: {cost['seconds'] * 1000:,.1f} ms, {cost['touched']:,} rows touched, "
                f"{cost['rows']:,} kept, {cost['answers']:,} derivations"
            )
        yield "\n".join(rows)

    # Variables and labels

    def _variable(self, name_place: NamePlace) -> str:
        rule, checked = self._rule_at(name_place), self.document.checked
        type = types_of(checked.plan).variable(rule.label, name_place.name.name) if rule and checked else ""
        shown, _, why = type.partition(", ")
        text = f"```aug\n{name_place.name.name}{': ' + shown if shown else ''}\n```"
        return text + (f"\n{why}" if why else "")

    def _label(self, name_place: NamePlace) -> str:
        for statement in name_place.statement.statements if name_place.statement is not None else ():
            for literal in statement.body if isinstance(statement, s.RuleStatement) else ():
                for node in s.walk(literal):
                    if isinstance(node, s.Labelled) and node.label == name_place.name.name:
                        return f"```aug\n{node.label}: {show_node(node.body)}\n```"
        return ""

    # Queries

    def _in_query(self, name_place: NamePlace) -> str:
        name = name_place.name.name
        tree = read_query(self.document.source, Findings())
        if tree is None:
            return ""
        match name_place.name.meaning:
            case "gpm":
                texts = [define.span.text for define in tree.defines if define.name.text == name]
                return f"```spaseq\n{texts[0]}\n```" if texts else ""
            case "stream":
                clauses = [c for c in tree.clauses if isinstance(c, q.FromStream) and c.name.text == name]
                return f"```spaseq\n{clauses[0].span.text}\n```" if clauses else ""
            case "prefix":
                iris = [p.iri for p in tree.prologue if isinstance(p, q.QueryPrefix) and p.name.rstrip(":") == name]
                return f"`{name}:` is <{iris[0]}>" if iris else ""
            case "variable":
                users = [
                    d.name.text for d in tree.defines if re.search(rf"[?$]{re.escape(name)}\b", d.pattern.span.text)
                ]
                where = f"in {', '.join(users)}" if users else "in no graph pattern"
                return f"```spaseq\n?{name}\n```\n{where}"
        return ""
