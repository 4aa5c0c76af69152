"""`python -m arena_lightning <subcommand>`; see `arena_lightning.cli`."""

from arena_lightning.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
