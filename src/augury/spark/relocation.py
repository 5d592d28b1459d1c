"""A checkpoint that goes on elsewhere: in another folder, or with other sources."""

from __future__ import annotations

import json
import os
import shutil
import zlib
from pathlib import Path

_NO_PLACE = "-"  # of a source, in Spark's log of batches
_PIECE = 512  # bytes of a checksum


def forget_sources(spark: Path) -> None:
    """Takes out of a checkpoint how far its sources were: they are others from now on."""
    shutil.rmtree(spark / "sources", ignore_errors=True)
    for entry in _entries(spark / "offsets"):
        version, settings, *places = entry.read_text().splitlines()
        _rewrite(entry, "\n".join([version, settings, *(_NO_PLACE for _ in places)]))


def relocate(spark: Path, target: Path) -> None:
    """Lets a checkpoint say that it is elsewhere: it names the files with the schemas of its state by their whole path."""
    for entry in spark.glob("state/*/_metadata/v2/*"):
        if entry.name.isdecimal():
            version, text = entry.read_text().split("\n", 1)
            said = json.loads(text)
            for store in said.get("stateStoreInfo", ()):
                names = store.get("stateSchemaFilePaths") or ()
                home = target / entry.parent.relative_to(spark).parent.parent / "_stateSchema"
                store["stateSchemaFilePaths"] = [
                    f"file:{home}/{'/'.join(str(name).rsplit('/', 2)[1:])}" for name in names
                ]
            if json.loads(text) != said:
                _rewrite(entry, f"{version}\n{json.dumps(said)}")


def _entries(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.name.isdecimal()]


def _rewrite(path: Path, text: str) -> None:
    """Another text, with checksums as Hadoop writes them beside it. In between, the file has none."""
    data, part, sums = text.encode(), path.with_name(f".{path.name}.part"), path.with_name(f".{path.name}.crc")
    part.write_bytes(data)
    sums.unlink(missing_ok=True)
    os.replace(part, path)
    pieces = (zlib.crc32(data[start : start + _PIECE]).to_bytes(4, "big") for start in range(0, len(data), _PIECE))
    part.write_bytes(b"crc\0" + _PIECE.to_bytes(4, "big") + b"".join(pieces))
    os.replace(part, sums)
