"""What editors, prompts and highlighters know of the two languages: their words, their names, and the language server."""
