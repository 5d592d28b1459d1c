"""RDF graph events in columns, and graph patterns over whole batches of them.

texts ── read.py ──▶ Triples (numbers of terms, by event) ── solve.py ──▶ Solutions (numbers of terms, by event)
                          ▲                                     ▲
                     terms.py: a number for each different term  patterns.py ◀── parse.py ◀── a group of SPARQL
"""
