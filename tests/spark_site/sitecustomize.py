"""For the Python processes that Spark starts in tests: they take PySpark as it is installed.

Spark puts its own archive first, where nothing is compiled: each process compiles PySpark again, which takes it a second,
and a stream on a busy machine fails where that takes ten.
"""

import sys

sys.path[:] = [place for place in sys.path if not place.endswith("pyspark.zip")]
