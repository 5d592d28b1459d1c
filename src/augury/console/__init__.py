"""`augury console`: a local web page that shows what a program does with its events.

`watched.py` is a session with the log of its inputs and of its answers (`lane_items.py`, `input_log.py`). `views.py` answers the
questions of the page as plain data; `web_app.py` serves them, behind the checks of `access.py`. What a user tries out runs in
a process of its own (`sandbox.py`, `hypothesis_run.py`). The page is built from `console/web` into `static/`.
"""
