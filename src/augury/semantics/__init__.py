"""The equations of the semantics for patterns, policies and static calls: the occurrences of each node over a list of events.

`reference/` evaluates whole programs with them; `explain/` derives single events again, to show what they rest on.
"""
