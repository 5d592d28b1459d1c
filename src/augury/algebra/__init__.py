"""The algebra: the nodes of a program, the same for both styles of rules, and analyses of them."""
