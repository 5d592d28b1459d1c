"""Property tests are the same each time in CI; `make fuzz` tries many more, each time others."""

import os

from hypothesis import HealthCheck, settings

_QUIET = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
settings.register_profile("ci", max_examples=60, deadline=None, derandomize=True, suppress_health_check=_QUIET)
settings.register_profile("fuzz", max_examples=3000, deadline=None, suppress_health_check=_QUIET)
settings.load_profile("fuzz" if os.environ.get("AUGURY_FUZZ") else "ci")
