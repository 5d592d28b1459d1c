"""Text in: a folder for each language, and the checks that they share, which look at the algebra."""
