"""The static checks of the repository: `python -m checks`."""
