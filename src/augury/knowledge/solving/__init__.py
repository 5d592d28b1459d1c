"""Facts as relations, and static rules over them, answered for whole columns of bindings."""
