from .plugin import Archive

__all__ = ["Archive"]
