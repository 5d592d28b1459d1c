"""What Spark forks its Python workers from in tests: the daemon of PySpark, with what they all import already there.

A worker of its own takes one or two seconds to import pandas, Arrow and Augury, and tests start dozens. Spark itself does
not import before it forks, since libraries may have started threads; those of Arrow start with the first work.
"""

from __future__ import annotations

import gc

if __name__ == "__main__":
    import pandas  # noqa: F401
    import pyarrow.compute  # noqa: F401
    import pyspark.worker  # noqa: F401
    from pyspark.daemon import manager

    import augury.spark.stream  # noqa: F401

    gc.freeze()  # what is here stays: nobody looks at it again, and workers need no copy of it
    manager()
