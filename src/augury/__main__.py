"""`python -m augury` is `augury`."""

from augury.cli import main

main()
