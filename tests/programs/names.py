"""Functions of every kind and origin, for what the profiler says of them."""
import importlib
import os
import sys
import types
import zipfile


def shapes():
    """One function of each shape."""

    class Outer:
        def method(self):
            return (lambda: 1)()

        @property
        def value(self):
            return 1

        @staticmethod
        def static():
            return 1

        class Inner:
            def method(self):
                return 1

    outer = Outer()
    outer.method()
    outer.value
    Outer.static()
    Outer.Inner().method()
    list(n for n in range(2))

    async def coroutine():
        return 1

    try:
        coroutine().send(None)
    except StopIteration:
        pass

    def closure():
        return outer

    closure()


def made():
    """Code that no import made."""
    space = {"__name__": "made_up.module"}
    exec("def by_exec():\n    return 1\n\nby_exec()", space)
    eval("(lambda: 1)()", {"__name__": "evaluated"})
    exec("def nameless():\n    return 1\n\nnameless()", {})
    files = (
        "/home/someone/secret/page.py",
        "<template /home/someone/secret/page.html>",
        "relative/page.py",
        "../../someone/page.py",
        "file:///home/someone/page.py",
        "C:\\Users\\someone\\page.py",
        # Longer than what is kept of a name, so that it begins in the middle of a folder's name.
        "/home/" + "someone" * 100 + "/page.py",
    )
    for n, file in enumerate(files):
        exec(compile("def from_%d():\n    return 1\n\nfrom_%d()" % (n, n), file, "exec"), {"__name__": "compiled"})


    # A module and a function whose names are paths.
    exec("def odd():\n    return 1\n", space := {"__name__": "/home/someone/shop"})
    types.FunctionType(space["odd"].__code__.replace(co_qualname="/home/someone/odd.function"), space)()


def twice():
    """One code object in two modules: the first sight decides."""

    def shared():
        return 1

    for name in ("first", "second"):
        types.FunctionType(shared.__code__, {"__name__": name})()


def reuse():
    """Code objects that come and go: an address that is used again must not bring an old name along."""
    for n in range(3000):
        space = {"__name__": "reuse"}
        exec("def short_lived_%d():\n    return %d\n" % (n, n), space)
        space["short_lived_%d" % n]()


def frozen():
    import __hello__
    import io

    out, sys.stdout = sys.stdout, io.StringIO()
    try:
        __hello__.main()
    finally:
        sys.stdout = out


def install_zip(root, name, package, entry=None):
    """A distribution that stays in its zip file, in the server's folder of plugins."""
    os.makedirs(os.path.join(root, "plugins"), exist_ok=True)
    path = os.path.join(root, "plugins", name + ".zip")
    info = "%s-2.0.dist-info/" % name.replace("-", "_")
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(package + "/__init__.py", "import json\n\n\ndef work():\n    return json.loads('[1]')\n")
        file.writestr(info + "METADATA", "Metadata-Version: 2.1\nName: %s\nVersion: 2.0\n" % name)
        file.writestr(info + "RECORD", package + "/__init__.py,,\n")
        if entry:
            file.writestr(info + "entry_points.txt", "[endstone]\n%s = %s:Plugin\n" % (entry, package))
    sys.path.append(path)
    importlib.invalidate_caches()


def install_library(root, package):
    """A library in a folder of its own."""
    folder = os.path.join(root, "libraries")
    os.makedirs(os.path.join(folder, package))
    with open(os.path.join(folder, package, "__init__.py"), "w") as file:
        file.write("import time\n\n\ndef work():\n    return time.strptime('2025', '%Y')\n")
    sys.path.append(folder)
    importlib.invalidate_caches()


def install_editable(root, name, package, entry):
    """As `pip install -e` leaves it: the package is elsewhere, and only its metadata is in site-packages."""
    site = os.path.join(root, "venv", "lib", "site-packages")
    source = os.path.join(root, "work", name)
    info = os.path.join(site, "%s-1.0.dist-info" % name.replace("-", "_"))
    os.makedirs(info)
    os.makedirs(os.path.join(source, package))
    with open(os.path.join(source, package, "__init__.py"), "w") as file:
        file.write("def work():\n    return 1\n")
    for file, text in (
        ("METADATA", "Metadata-Version: 2.1\nName: %s\nVersion: 1.0\n" % name),
        ("RECORD", "__editable__.pth,,\n"),
        ("entry_points.txt", "[endstone]\n%s = %s:Plugin\n" % (entry, package)),
    ):
        with open(os.path.join(info, file), "w") as out:
            out.write(text)
    sys.path += [site, source]
    importlib.invalidate_caches()
    importlib.import_module(package)


def work_in(package):
    importlib.import_module(package).work()


def reload_and_work(package):
    importlib.reload(sys.modules[package]).work()


# More code objects than a session names.
def many(number):
    def template():
        return 1

    code = template.__code__
    for n in range(number):
        types.FunctionType(code.replace(co_firstlineno=n + 1), {"__name__": "many"})()


def after_all():
    return 1
