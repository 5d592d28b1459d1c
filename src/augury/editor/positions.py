"""Offsets of our texts as positions of the protocol: lines, and columns that count UTF-16 units unless both sides agree on more."""

from __future__ import annotations

from bisect import bisect_right

from lsprotocol import types as lsp

from augury.editor.open_files import Document


class Positions:
    """Positions in one encoding."""

    def __init__(self, encoding: str = "utf-16") -> None:
        self.encoding = encoding

    def position(self, document: Document, offset: int) -> lsp.Position:
        offset = max(0, min(offset, len(document.text)))
        line = bisect_right(document.line_starts, offset) - 1
        return lsp.Position(line, self.width(document.text[document.line_starts[line] : offset]))

    def range(self, document: Document, start: int, end: int) -> lsp.Range:
        return lsp.Range(self.position(document, start), self.position(document, max(start, end)))

    def offset(self, document: Document, position: lsp.Position) -> int:
        starts = document.line_starts
        if position.line >= len(starts):
            return len(document.text)
        start = starts[position.line]
        end = starts[position.line + 1] - 1 if position.line + 1 < len(starts) else len(document.text)
        line = document.text[start:end]
        if line.isascii():
            return start + min(position.character, len(line))
        units = 0
        for index, character in enumerate(line):
            if units >= position.character:
                return start + index
            units += self.width(character)
        return end

    def width(self, text: str) -> int:
        if text.isascii() or self.encoding == "utf-32":
            return len(text)
        return len(text.encode("utf-8")) if self.encoding == "utf-8" else len(text.encode("utf-16-le")) // 2
