"""The tables of a parser as plain data that is read fast.

Lark's own `save` and `load` make every object of the tables again, one by one, with names and types. Here equal parts are
numbers, and what makes a tree of a rule of the grammar is made when that rule is first reduced: a program uses few of the
thousands that the options of the grammar expand to.
"""

from __future__ import annotations

import json
import re
from typing import Any

from lark import Lark, Tree
from lark.common import LexerConf, ParserConf
from lark.grammar import NonTerminal, Rule, RuleOptions, Terminal
from lark.lark import LarkOptions
from lark.lexer import TerminalDef
from lark.parse_tree_builder import ParseTreeBuilder
from lark.parser_frontends import ParsingFrontend
from lark.parsers.lalr_analysis import IntParseTable, Reduce, Shift
from lark.parsers.lalr_parser import LALR_Parser, _Parser

from augury.core.collector import uncollected

_tree_builder: Any = ParseTreeBuilder  # these have no types
_parse_table: Any = IntParseTable


class _RuleCallbacks(dict[Any, Any]):
    """What makes a tree of each rule of a grammar, made when it is first asked for."""

    def __init__(self, options: LarkOptions) -> None:
        super().__init__({"": None})  # Lark reads an empty one as none
        self._options = options

    def __missing__(self, rule: Rule) -> Any:
        options = self._options
        placeholders = options.maybe_placeholders
        builder = _tree_builder([rule], options.tree_class or Tree, options.propagate_positions, False, placeholders)
        self.update(builder.create_callback(options.transformer))
        return self[rule]


class _Numbers:
    """Items, each once, by number."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}

    def of(self, item: object) -> int:
        return self._numbers.setdefault(item, len(self._numbers))

    @property
    def items(self) -> list[Any]:
        return list(self._numbers)


def tables_of(parser: Lark) -> bytes:
    """The tables of a parser: a positive number of a state is one to go to, a negative one a rule to reduce."""
    lalr = parser.parser.parser
    table, conf = lalr._parse_table, parser.lexer_conf
    symbols, options, tokens = _Numbers(), _Numbers(), _Numbers()
    rules = [
        (
            symbols.of(_symbol(rule.origin)), [symbols.of(_symbol(symbol)) for symbol in rule.expansion],
            rule.order, None if rule.alias is None else str(rule.alias), options.of(_options(rule.options)),
        )
        for rule in parser.rules
    ]  # fmt: skip
    numbers = {rule: -1 - number for number, rule in enumerate(parser.rules)}
    states = [
        (state, [tokens.of(str(token)) for token in actions],
         [numbers[target] if action is Reduce else target for action, target in actions.values()])
        for state, actions in table.states.items()
    ]  # fmt: skip
    text = json.dumps(
        {
            "options": parser.options.serialize(None), "symbols": symbols.items, "rule_options": options.items,
            "rules": rules, "tokens": tokens.items, "states": states,
            "start_states": table.start_states, "end_states": table.end_states,
            "terminals": [terminal.serialize(None) for terminal in conf.terminals], "ignore": list(conf.ignore),
            "flags": conf.g_regex_flags, "lexer": conf.lexer_type, "start": parser.parser.parser_conf.start,
        },
        separators=(",", ":"),
    )  # fmt: skip
    return text.encode()


def _symbol(symbol: Any) -> tuple[str, bool | None]:
    """The name, and of a terminal whether trees leave it out."""
    return str(symbol.name), symbol.filter_out if symbol.is_term else None


def _options(options: RuleOptions) -> tuple[Any, ...]:
    return options.keep_all_tokens, options.expand1, options.priority, options.template_source, options.empty_indices


def parser_of(tables: bytes) -> Lark:
    """The parser that has such tables."""
    with uncollected():
        return _parser_of(json.loads(tables))


def _parser_of(data: dict[str, Any]) -> Lark:
    symbols: list[Any] = [
        NonTerminal(name) if filtered is None else Terminal(name, filtered) for name, filtered in data["symbols"]
    ]
    rule_options = [
        RuleOptions(keep, expand, priority, template, tuple(empty))
        for keep, expand, priority, template, empty in data["rule_options"]
    ]
    rules = [
        Rule(symbols[origin], [symbols[part] for part in expansion], order, alias, rule_options[options])
        for origin, expansion, order, alias, options in data["rules"]
    ]
    states, tokens = data["states"], data["tokens"]
    # The last rule is at -1 - (n - 1), so that a negative number is a place from the end.
    actions: list[tuple[Any, Any]] = [(Shift, state) for state in range(max(state for state, _, _ in states) + 1)]
    actions += [(Reduce, rule) for rule in reversed(rules)]
    read_token, read_action = tokens.__getitem__, actions.__getitem__
    table = {
        state: dict(zip(map(read_token, names), map(read_action, targets), strict=True))
        for state, names, targets in states
    }
    parser = Lark.__new__(Lark)
    options = parser.options = LarkOptions.deserialize(data["options"], {})
    terminals = [TerminalDef.deserialize(terminal, {}) for terminal in data["terminals"]]
    conf = parser.lexer_conf = LexerConf(terminals, re, data["ignore"], None, {}, data["flags"], skip_validation=True)
    conf.lexer_type = data["lexer"]
    parser.rules, parser.terminals, parser.source_path = rules, conf.terminals, "<kept>"
    parser._terminals_dict = conf.terminals_by_name
    callbacks = parser._callbacks = _RuleCallbacks(options)
    lalr = LALR_Parser.__new__(LALR_Parser)
    lalr._parse_table = _parse_table(table, data["start_states"], data["end_states"])
    lalr.parser = _Parser(lalr._parse_table, callbacks, options.debug)
    parsing = ParserConf(rules, callbacks, data["start"])
    parsing.parser_type = "lalr"
    parser.parser = ParsingFrontend(conf, parsing, options, parser=lalr)
    return parser
