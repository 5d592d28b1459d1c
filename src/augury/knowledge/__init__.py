"""Knowledge: facts from programs, files, tables, databases and RDF, before any rule asks for them."""
