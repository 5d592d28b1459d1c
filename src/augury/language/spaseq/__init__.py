"""SPAseQ: sequences of graph patterns over streams of RDF graphs.

    text ── tokens.py ──▶ tokens ── spaseq.lark, query_reader.py ──▶ query_tree.py ── query_algebra.py ──▶ GraphQuery
                                                                          └── query_printer.py ──▶ text

The language around the braces is ours; what stands inside the braces of a GPM, and expressions, are SPARQL, which
`sparql_text.py` writes in a normal form and `algebra/sparql_parser.py` has rdflib read.
"""
