from .plugin import Census

__all__ = ["Census"]
