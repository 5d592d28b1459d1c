"""Rules: the grammar, the syntax tree, the printer, and the way into the algebra."""
