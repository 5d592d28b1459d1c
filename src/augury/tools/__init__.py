"""Tools for rule authors: tests and what they cover, costs, versions compared, an editor's server, a prompt."""
