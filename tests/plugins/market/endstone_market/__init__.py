from .plugin import Market

__all__ = ["Market"]
