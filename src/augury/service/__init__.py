"""A program as a service: sources and sinks at addresses, and state on disk that survives a kill.

    service = augury.live("fire.aug", sources=["readings.jsonl"], sinks=["alerts.jsonl"], state="state", lateness="10 min")
    service.run()                 # or: await service.serve(); or: with service.running(): …

A step is what a session takes in at once. `journal.py` has the steps on disk before they are taken and before their input is
acknowledged; `saved_state.py` a snapshot, behind which they are forgotten. After a kill the steps since the snapshot are taken
again: they have the same changes with the same ids, and sinks write each once, as far as they can.

`source_feed.py` and `sink_writer.py` are the threads of sources and sinks, `stepping.py` takes a step, `watermarks.py` says how
far time is, `rule_switch.py` what leads from one program to another, `live_service.py` runs all of it.
"""

from augury.service.live_service import LiveService, NamedSink, NamedSource, ServiceOptions
from augury.service.opening_service import live

__all__ = ["LiveService", "NamedSink", "NamedSource", "ServiceOptions", "live"]
