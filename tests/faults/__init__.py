"""Faults that are made on purpose, as often as one likes; what is quick of it is in the tests beside."""
