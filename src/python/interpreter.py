"""What this interpreter is and how its garbage collector does: run for each report, read by interpreter.rs."""


def describe():
    import gc
    import json
    import sys

    # Importing it here would make it take our thread for the program's first.
    threading = sys.modules.get("threading")
    return json.dumps(
        {
            "implementation": sys.implementation.name,
            "threads": threading.active_count() if threading else None,
            "collects": gc.isenabled(),
            "generations": [
                {key: int(generation.get(key, 0)) for key in ("collections", "collected", "uncollectable")}
                for generation in gc.get_stats()
            ],
        }
    )
