"""The operators of a circuit: each turns changes of the tables it reads into changes of the one it writes."""
