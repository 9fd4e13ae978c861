from .plugin import Mill
from .work import spent

__all__ = ["Mill", "spent"]
