"""The incremental engine: a program as a circuit of operators that turn changes of events into changes of answers."""
