"""Why a check ends early."""


class Failure(Exception):
    """Something that was to be shown is not so, or cannot be."""


class CannotBegin(Exception):
    """The check was not made: nothing was changed."""
