from .plugin import Quests

__all__ = ["Quests"]
