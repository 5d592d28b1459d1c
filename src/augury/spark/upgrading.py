"""What becomes of a running stream when its program changes: which rules keep their state, and what stands in the way.

The buckets of a stream go on from their state (`Session.become`), so every stage must stay what it is: the same key, and the
same place in the order. With one bucket there is one stage, and nothing can stand in the way of a rule.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from augury.algebra.place import reading
from augury.algebra.plan import Plan, rule_reads, static_calls
from augury.algebra.stages import Stage, Stages, needed, one_stage, stages
from augury.compiled import Compiled
from augury.core.clock import Clock
from augury.core.errors import RunError
from augury.planner.cut_rules import cut_rules, rule_of_part
from augury.planner.planning import Setting
from augury.planner.split_aggregates import split_aggregates
from augury.spark.state import NEW

Fate = Literal["kept", "changed", "new", "gone"]


@dataclass(frozen=True)
class StreamSetting:
    """What decides about the stages of a stream beside its program."""

    clock: Clock
    buckets: int
    longest: int | None
    retention: int | None


@dataclass(frozen=True)
class Upgrade:
    """What becomes of each rule, and from when on new rules see events; `obstacles` say why it cannot be done."""

    fates: dict[str, Fate]
    since: str
    early: bool
    obstacles: tuple[str, ...] = ()

    def lines(self) -> Iterator[str]:
        """What happens to each rule, a line each."""
        sees = f"sees what starts after {self.since}" if self.since else "sees all that comes"
        answers = "its answers are retracted, as far as they are held" if self.early else "its answers stay"
        for label, fate in self.fates.items():
            match fate:
                case "kept":
                    yield f"rule `{label}` is unchanged and keeps its state"
                case "changed":
                    yield f"rule `{label}` has changed: it starts anew and {sees}; of the earlier one, {answers}"
                case "new":
                    yield f"rule `{label}` is new: it {sees}"
                case "gone":
                    yield f"rule `{label}` is gone: {answers}"

    def check(self, else_do: str = "") -> None:
        """Raises RunError where the stream cannot go on with the program."""
        if self.obstacles:
            raise RunError(
                "this program cannot continue the stream: " + "; ".join(self.obstacles),
                hint="; ".join(filter(None, [NEW, else_do])),
            )


def upgrade(old: Compiled, new: Compiled, setting: StreamSetting, since: str, early: bool) -> Upgrade:
    """What becomes of a stream of the old program that goes on with the new one."""
    return Upgrade(_fates(old, new), since, early, tuple(_obstacles(old.lowered, new.lowered, setting)))


def _fates(old: Compiled, new: Compiled) -> dict[str, Fate]:
    before = {rule.label: rule for rule in old.optimised.rules}
    after = {rule.label: rule for rule in new.optimised.rules}
    fates: dict[str, Fate] = {}
    for label in {**before, **after}:
        if label not in after:
            fates[label] = "gone"
        elif label not in before:
            fates[label] = "new"
        else:
            fates[label] = "kept" if before[label] == after[label] else "changed"
    return fates


def _obstacles(old: Plan, new: Plan, setting: StreamSetting) -> Iterator[str]:
    if old.tick != new.tick:
        yield "its tick is another"
    if old.clauses != new.clauses:
        yield "its static rules or facts are others"
    if (old.made or new.made) and static_calls(old) != static_calls(new):
        yield "it asks for other facts, and some facts are made by rules"
    if old.made.keys() != new.made.keys():
        yield "its rules make other facts"
    read = {type for rule in old.rules for type in rule_reads(rule)}
    for name, arity in sorted((new.derived.keys() - old.derived.keys()) & read):
        yield f"`{name}` with {arity} arguments was an input, and is now derived"
    read = {type for rule in new.rules for type in rule_reads(rule)}
    for name, arity in sorted((old.derived.keys() - new.derived.keys()) & read):
        yield f"`{name}` with {arity} arguments was derived, and is now an input"
    for name in sorted(old.declared.keys() & new.declared.keys()):
        changed = [a.name for a, b in zip(old.declared[name], new.declared[name], strict=False) if a != b]
        if changed:
            yield f"the attribute `{changed[0]}` of `{name}` is another"
    yield from _moved(_staged(old, setting), _staged(new, setting))


def _staged(plan: Plan, setting: StreamSetting) -> Stages:
    plan = needed(plan, plan.outputs)
    if setting.buckets == 1:
        return one_stage(plan, setting.longest)
    varying = reading(plan, {name for name, _ in plan.made})
    cut = split_aggregates(cut_rules(plan, Setting(setting.clock, varying=varying, retention=setting.retention)))
    return stages(needed(cut, cut.outputs), setting.longest, everywhere=True)


def _moved(old: Stages, new: Stages) -> Iterator[str]:
    """Why the state of the stages does not fit: there are others, with other keys, or a rule is in another one."""
    before, after = len(old.stages), len(new.stages)
    if before != after:
        yield f"it runs in {after} {'stage' if after == 1 else 'stages'}, and ran in {before}"
        return
    if bool(old.spread & set(old.plan.derived)) != bool(new.spread & set(new.plan.derived)):
        yield "its answers are merged in another way"
    places = {rule.label: stage.number for stage in old.stages for rule in stage.rules}
    for was, stage in zip(old.stages, new.stages, strict=True):
        yield from _other_key(was, stage)
        for rule in stage.rules:
            if places.get(rule.label, stage.number) != stage.number:
                yield f"rule `{rule_of_part(rule.label)}` was in stage {places[rule.label]}, and is now in stage {stage.number}"


def _other_key(was: Stage, stage: Stage) -> Iterator[str]:
    if (was.how, was.longest) != (stage.how, stage.longest):
        yield f"stage {stage.number} spreads its events in another way"
        return
    for type in sorted(was.reads.keys() & stage.reads.keys()):
        if was.reads[type] != stage.reads[type] or (type in was.everywhere) != (type in stage.everywhere):
            yield f"the key of `{type[0]}` in stage {stage.number} is another"
