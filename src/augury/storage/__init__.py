"""Values as codes, rows as columns: what knowledge and the engine stand on."""
