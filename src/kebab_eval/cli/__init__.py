"""The command line: a lazy group and one thin file for each command."""
