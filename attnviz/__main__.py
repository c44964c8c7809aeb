"""`python -m attnviz` starts the command line."""

from attnviz.cli import main

if __name__ == "__main__":
    main()
