"""Text in: the grammar, the syntax tree, the printer, the checks, and the way into the algebra."""
