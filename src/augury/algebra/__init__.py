"""The algebra: what a program is made of, whatever style it was written in, and what follows from its shape."""
