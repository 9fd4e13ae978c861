from .plugin import Bakery

__all__ = ["Bakery"]
