"""Knowledge: facts from programs, files, tables, databases and RDF, and static rules over them."""
