"""Notifications to people, through Apprise: mail, Slack, PagerDuty and a hundred others.

    notify://?url=${file:/etc/augury/slack-url}          the address of Apprise, which is a secret

One message for each detection when it is inserted, and one when it is retracted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import apprise
import orjson

from augury.connectors.addresses import Address, hide
from augury.connectors.rendering import RenderedChanges
from augury.connectors.sink import AnswerSink
from augury.connectors.source import UnavailableError
from augury.core.errors import RunError


@dataclass(frozen=True)
class NotifyOptions:
    url: str = ""


class NotificationSink(AnswerSink):
    def __init__(self, address: Address) -> None:
        self.address, options = address, address.read(NotifyOptions)
        hide(options.url)
        self._apprise: Any = apprise.Apprise()
        if not options.url or not self._apprise.add(options.url):
            raise RunError(
                f"{address} has no address that Apprise knows",
                hint="write it as notify://?url=${file:PATH}, as Apprise has it",
            )
        self._done = 0
        self._steps = (0, 0)

    def write(self, steps: Sequence[RenderedChanges]) -> list[tuple[str, bytes]]:
        key = (steps[0].step, steps[-1].step)
        if key != self._steps:
            self._steps, self._done = key, 0
        rows = [row for step in steps for row in zip(step.ops, step.lines, strict=True)]
        for op, line in rows[self._done :]:
            change = orjson.loads(line)
            title = f"{change['type']}({', '.join(map(str, change.get('args', ())))})"
            state = "detected" if op == "insert" else "no longer so"
            kind = apprise.NotifyType.WARNING if op == "insert" else apprise.NotifyType.SUCCESS
            body = f"{title} {state}, {change.get('end', '')}, id {change['id']}"
            if not self._apprise.notify(body=body, title=title, notify_type=kind):
                raise UnavailableError(f"{self.address}: the notification was not accepted")
            self._done += 1
        return []

    def check(self) -> str:
        return "known to Apprise"


def sink(address: Address) -> AnswerSink:
    return NotificationSink(address)
