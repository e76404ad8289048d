"""`python -m ecphoria` is the command line."""

from ecphoria.cli.main import run

if __name__ == "__main__":
    run()
