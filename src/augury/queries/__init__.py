"""SPAseQ queries on the engine: rules over runs whose values are RDF terms, and the functions that these rules call."""
