"""What a user asks and tries out: why not, what if, a draft of the rules. What may cost much runs in a sandbox."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from augury.console.edits import HypothesisRequest
from augury.console.near_misses import farness, near_misses
from augury.console.sandbox import Sandbox
from augury.console.state_views import held_step
from augury.console.views import MomentRequest
from augury.console.watched import WatchedSession
from augury.console.watched_lanes import WatchedLanes
from augury.core.errors import RunError
from augury.core.model import order_key, show_value
from augury.explain.why_not.asked import atom_with_extra, read_asked, underivable

_FEW_ROWS = 5000  # of state, among which a question is answered at once
_MANY_ROWS = 200_000  # of the state of a stream, among which none is
_VALUES = 40  # that complete an argument
_LONGEST = 2000  # letters of a question


@dataclass(frozen=True)
class AtomRequest:
    """An event that is asked about, as of a moment."""

    atom: str
    moment: int | None = None


@dataclass(frozen=True)
class ArgumentRequest:
    """An argument of a type, whose values begin with a text."""

    type: str
    argument: int
    beginning: str = ""


@dataclass(frozen=True)
class DraftRequest:
    """Other texts of sources of the program, by name."""

    sources: dict[str, str]


class TrialViews:
    """Tries out what a user asks of a watched session."""

    def __init__(self, watched: WatchedLanes) -> None:
        self.watched = watched
        self.checks = Sandbox(seconds=8, megabytes=1500)
        self.trials = Sandbox(seconds=30, megabytes=3000)

    @property
    def _session(self) -> WatchedSession:
        """The session, of which there can be copies."""
        if isinstance(self.watched, WatchedSession):
            return self.watched
        raise RunError(
            "the console only looks at a stream on Spark", hint="open its events to try something out: --events FILE"
        )

    def close(self) -> None:
        self.checks.close()
        self.trials.close()

    def why_not(self, request: AtomRequest) -> dict[str, Any]:
        """The nearest misses of an event."""
        if len(request.atom) > _LONGEST:
            raise RunError(f"a question has at most {_LONGEST:,} letters")
        step = held_step(self.watched, request.moment)
        if not isinstance(self.watched, WatchedSession):
            return self._why_not_of_stream(request.atom, step)
        session = self.watched.session_at(step)
        with session._lock:
            if session.circuit.weight <= _FEW_ROWS:
                return {"misses": near_misses(session, request.atom)}
        return self.trials.ask("why-not", {"atom": request.atom}, self.watched.trial(step).to_bytes())

    def _why_not_of_stream(self, atom: str, step: int) -> dict[str, Any]:
        """The nearest misses in each bucket that could derive an event."""
        sessions, plan = self.watched.sessions_at(step), self.watched.plan
        asked = read_asked(atom, self.watched.setup.clock, plan.prefixes)
        able = [held for held in sessions if any(rule.type == asked.type for rule in held.session.program.plan.rules)]
        if sum(held.session.circuit.weight for held in able) > _MANY_ROWS:
            raise RunError(
                "the state of the stream is too large to search here", hint="ask `augury why-not --checkpoint`"
            )
        if not able:
            raise underivable(plan, asked)
        best: dict[str, dict[str, Any]] = {}  # by rule, of all buckets
        for held in able:
            with held.session._lock:
                misses = near_misses(held.session, atom_with_extra(atom, held.extra), held.extra)
            for miss in misses:
                best[miss["rule"]] = min(best.get(miss["rule"], miss), miss, key=farness)
        return {"misses": sorted(best.values(), key=farness)}

    def values(self, request: ArgumentRequest) -> dict[str, Any]:
        """Values that an argument has had, the latest first."""
        with self.watched.lock:
            lanes = [lane for lane in self.watched.lanes.values() if lane.name == request.type]
            events = [event for lane in lanes for event in lane.events[-5000:]]
        seen: dict[Any, str] = {}
        for event in reversed(events):
            if request.argument < len(event.args):
                value = event.args[request.argument]
                text = show_value(value)
                if request.beginning.casefold() in text.casefold():
                    seen.setdefault(order_key(value), text)
            if len(seen) >= _VALUES:
                break
        return {"values": sorted(seen.values())}

    def what_if(self, request: HypothesisRequest) -> dict[str, Any]:
        """What would appear and disappear."""
        watched = self._session
        recording = watched.trial(watched.steps.step_at(request.moment))
        return self.trials.ask("what-if", asdict(request), recording.to_bytes())

    def check(self, request: DraftRequest) -> dict[str, Any]:
        """What is wrong with a draft, and which rules it changes."""
        return self.checks.ask("check", asdict(request), self.watched.draft().to_bytes())

    def apply(self, request: DraftRequest) -> dict[str, Any]:
        """Goes over to the rules of a draft, which run on the state that is held; they have run on a copy before."""
        watched = self._session
        self.what_if(HypothesisRequest(sources=request.sources))
        return {**watched.change_rules(watched.text.changed(request.sources)), "version": watched.version}

    def recorded(self, request: MomentRequest) -> bytes:
        """The session as a file."""
        watched = self._session
        return watched.recording(watched.steps.step_at(request.moment)).without_functions().to_bytes()
