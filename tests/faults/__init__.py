"""Faults that are made on purpose, many of each: what is promised has to hold after every one.

A fault is a function of a number of trials and a seed; it yields for each trial what went wrong, or nothing. `make faults`
makes many of all, the tests a few of each.
"""
