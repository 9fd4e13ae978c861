"""Where this interpreter's code lies: run once per session, read by layout.rs."""


def gather():
    import importlib.metadata
    import json
    import os
    import sys
    import sysconfig

    def both(path):
        path = os.path.abspath(path)
        return {path, os.path.realpath(path)}

    paths = sysconfig.get_paths()
    stdlib = set()
    for key in ("stdlib", "platstdlib"):
        stdlib |= both(paths[key])
    site = set()
    for key in ("purelib", "platlib"):
        site |= both(paths[key])

    def is_library(folder):
        """A folder of libraries, as PYTHONPATH names them: not the standard library's, and not the server's own, which holds all kinds of things."""
        if not (os.path.isabs(folder) and os.path.isdir(folder)):
            return False
        server = os.path.realpath(".")
        return not any(
            os.path.commonpath([root, path]) == root for path in both(folder) for root in stdlib
        ) and not any(os.path.commonpath([path, server]) == path for path in both(folder))

    for entry in sys.path:
        if isinstance(entry, str):
            if os.path.basename(entry) in ("site-packages", "dist-packages"):
                site |= both(entry)
            elif os.path.basename(entry) == "python%d%d.zip" % sys.version_info[:2]:
                stdlib |= both(entry)
            elif os.path.isfile(entry):
                # A zip file that modules are imported from.
                site |= both(entry)
            elif is_library(entry):
                site |= both(entry)

    def tops(distribution):
        """Paths of a distribution's packages and modules, and their names."""
        paths, modules = set(), set()
        for file in distribution.files or ():
            top = file.parts[0]
            if top in ("..", "/") or top.endswith((".dist-info", ".egg-info", ".data", ".pth")) or top == "__pycache__":
                continue
            paths |= both(str(distribution.locate_file(top)))
            if len(file.parts) > 1 or top.endswith(".py"):
                modules.add(top.removesuffix(".py"))
        return paths, modules

    def loaded(module):
        """Where a module that is already imported lies: finds what is installed in place."""
        module = sys.modules.get(module)
        paths = set()
        for path in getattr(module, "__path__", None) or [getattr(module, "__file__", None)]:
            if isinstance(path, str):
                paths |= both(path)
        return paths

    def attempt(act, *arguments):
        """Metadata of others may be damaged in any way."""
        try:
            return act(*arguments)
        except Exception:
            return set(), set()

    plugins = []
    for entry in importlib.metadata.entry_points(group="endstone"):
        paths, modules = attempt(tops, entry.dist) if entry.dist else (set(), set())
        top = entry.value.split(":")[0].strip().split(".")[0]
        paths |= loaded(top)
        plugins.append({
            "name": entry.name.replace("-", "_"),
            "paths": sorted(paths),
            "modules": sorted(modules | {top}),
        })
    def runs_in_a_context():
        """Whether a thread's first functions call its `run` through a context."""
        thread = getattr(sys.modules.get("threading"), "Thread", None)
        code = getattr(getattr(thread, "_bootstrap_inner", None), "__code__", None)
        return "_context" in getattr(code, "co_names", ())

    return json.dumps({
        "threads_run_in_a_context": runs_in_a_context(),
        "stdlib": sorted(stdlib),
        "stdlib_modules": sorted(sys.stdlib_module_names),
        "site": sorted(site),
        "endstone": sorted(loaded("endstone")),
        "plugins": plugins,
    })
