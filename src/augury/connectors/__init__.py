"""Connectors: one protocol for sources, one for sinks, and addresses that name them.

    address = Address.parse("wind=kafka://localhost:9092/readings?group=g")
    with opened(open_source(address)) as source:          # raises RunError: unknown scheme, missing extra, wrong option
        for delivery in source.poll(1000, 1.0):           # waits a second at most
            history = DeliveryReader(plan, clock).read(delivery)
            …                                             # session.push(history)
            source.commit(delivery.position)              # the input up to there is safe; never before that

`addresses.py` reads addresses and has the table of schemes, `source.py` and `sink.py` the protocols, `delivery.py` what a
source yields and how it becomes events, `rendering.py` what a sink gets. Each other file is a connector: it defines
`source(address)`, `sink(address)` or both, and imports its client library only there. Third parties add a scheme with an
entry point of the group `augury.connectors` whose name is the scheme and whose value is such a module.

`augury live` and the console use the same functions, so that an address means the same in both.
"""

from augury.connectors.addresses import Address, Connector, connectors, redacted
from augury.connectors.delivery import Delivery, DeliveryReader, Poison
from augury.connectors.opening import open_sink, open_source, opened
from augury.connectors.rendering import RenderedChanges, rendered
from augury.connectors.sink import AnswerSink
from augury.connectors.source import EventSource, Position, UnavailableError

__all__ = [
    "Address",
    "AnswerSink",
    "Connector",
    "Delivery",
    "DeliveryReader",
    "EventSource",
    "Poison",
    "Position",
    "RenderedChanges",
    "UnavailableError",
    "connectors",
    "open_sink",
    "open_source",
    "opened",
    "redacted",
    "rendered",
]
