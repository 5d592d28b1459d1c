"""Values as codes and rows as columns: the storage of knowledge and engine."""
