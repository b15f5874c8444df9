"""``python -m redqueen``: the command line, also when the script ``redqueen`` is not on the path."""

from redqueen.cli import main

if __name__ == "__main__":
    main()
