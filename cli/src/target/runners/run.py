"""Runs a Python file as a program, and serves the server that it defines if the program serves none itself.

The `gudgeon` command passes this text to the interpreter of the project, in which Gudgeon need not be installed: the
file may be a server of another library.
"""

import os
import sys


def main():
    names = ("FILE", "MODULE", "NAME", "AT", "NEEDS")
    settings = {name: os.environ.pop("GUDGEON_RUNNER_" + name, "") for name in names}
    os.environ.pop("GUDGEON_RUNNER", None)
    check_dependencies(settings["NEEDS"].splitlines(), settings["FILE"])
    at, name = settings["AT"], settings["NAME"]
    served = serve_at(at) if at else []
    watched = WatchedInput(sys.stdin) if not at and input_is_over() else None
    if watched:
        sys.stdin = watched
    place = settings["FILE"] or settings["MODULE"]
    # As a program has it: the file, then the arguments.
    del sys.argv[0]
    try:
        if settings["FILE"]:
            values = run_file(settings["FILE"], is_program=not name)
        else:
            values = import_module(settings["MODULE"])
    except KeyboardInterrupt:
        sys.exit(130)
    if name:
        server = named(values, name, place)
    elif served or (not at and has_served(watched)):
        return
    else:
        server = the_only_server(values, place)
    serve(server)


def check_dependencies(declared, path):
    """Ends the process if this interpreter does not have what a script declares (PEP 723)."""
    lacking = [dependency for dependency in map(lacking_dependency, declared) if dependency]
    if lacking:
        fail(
            f"{path} declares dependencies that {sys.executable} does not have: {', '.join(lacking)}",
            "install uv, which installs what a script declares: https://docs.astral.sh/uv; "
            "or activate an environment that has them",
        )


def lacking_dependency(text):
    """Returns a dependency that is not installed, as people should read it; None if it is."""
    import importlib.metadata
    import importlib.util
    import re

    try:
        from packaging.requirements import Requirement

        requirement = Requirement(text)
        name, specifier, marker = requirement.name, requirement.specifier, requirement.marker
        if marker is not None and not marker.evaluate():
            return None
    except ImportError:
        # Without the package that understands versions and conditions, only names are compared.
        if ";" in text:
            return None
        name, specifier = re.match(r"[\w.-]*", text.strip())[0], None
    except ValueError:
        name = ""
    if not name:
        return f"{text!r} (which is not a dependency)"
    try:
        version = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        # A package that is on the path without having been installed.
        return None if importlib.util.find_spec(re.sub(r"[-.]", "_", name)) else text
    if specifier and not specifier.contains(version, prereleases=True):
        return f"{text} (installed is {version})"
    return None


def run_file(path, is_program):
    """Runs a file, as a program or like an import; returns its variables."""
    import types

    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    # Its `if __name__ == "__main__":` must not serve when one of its servers is named.
    module = types.ModuleType("__main__" if is_program else os.path.splitext(os.path.basename(path))[0])
    module.__file__ = path
    module.__dict__["__builtins__"] = __builtins__
    sys.modules[module.__name__] = module
    with open(path, "rb") as file:
        source = file.read()
    try:
        exec(compile(source, path, "exec", dont_inherit=True), module.__dict__)
    except Exception as error:
        report(error, path)
    return module.__dict__


def import_module(name):
    import importlib

    sys.path.insert(0, os.getcwd())
    try:
        return importlib.import_module(name).__dict__
    except ModuleNotFoundError as error:
        if error.name is None or not (name + ".").startswith(error.name + "."):
            report(error, None)
        places = f"{os.getcwd()} or in {sys.prefix}"
        fail(f"there is no Python module {name!r} in {places}", "start it in the project's folder")
    except Exception as error:
        report(error, None)


def report(error, path):
    """Prints the traceback without the frames of this file, and ends the process."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != path and trace.tb_frame.f_globals is globals():
        trace = trace.tb_next
    error.__traceback__ = trace
    sys.excepthook(type(error), error, trace)
    sys.exit(1)


def is_gudgeon(value):
    module = sys.modules.get("gudgeon.server")
    return module is not None and isinstance(value, module.Server)


def is_other(value):
    """Returns whether a value is a server of the official SDK or of FastMCP, which `run()` serves."""
    kind = type(value)
    return kind.__module__.split(".")[0] in ("mcp", "fastmcp") and kind.__name__ in ("FastMCP", "MCPServer")


def the_only_server(values, place):
    names = {}
    for name, value in list(values.items()):
        if is_gudgeon(value) or is_other(value):
            names.setdefault(id(value), name)
    if len(names) > 1:
        several = ", ".join(names.values())
        fail(f"{place} defines several servers: {several}", f"name one of them: {place}:{next(iter(names.values()))}")
    if not names:
        fail(
            f"{place} runs no server and defines none",
            'define one, as in `app = gudgeon.Server("name")`, or run the server of another library: `mcp.run()`',
        )
    return values[next(iter(names.values()))]


def named(values, name, place):
    first, *rest = name.split(".")
    if first not in values:
        fail(f"{place} has no variable {first!r}", "check the name after the colon")
    value = values[first]
    for part in rest:
        if not hasattr(value, part):
            fail(f"{place}:{name}: {type(value).__name__} has no attribute {part!r}", "check the name after the colon")
        value = getattr(value, part)
    if not hasattr(value, "run") and callable(value):
        value = value()
    if not hasattr(value, "run"):
        what = f"{place}:{name} is not a server, but of type {type(value).__name__}"
        fail(what, "name a variable that holds a server")
    return value


def serve(server):
    try:
        # `serve_at` has replaced the address.
        server.run()
    except KeyboardInterrupt:
        sys.exit(130)


def serve_at(at):
    """Has Gudgeon's servers listen at an address, wherever the program says. Returns a list of those that it serves."""
    try:
        from gudgeon.server import Server
    except ImportError as error:
        fail(f"Gudgeon can't be imported by {sys.executable}: {error}", "install it there: pip install gudgeon")
    run, serve, served = Server.run, Server.serve, []

    def options_at(place, transport, options):
        return {} if place == "stdio" or transport == "stdio" else options

    def run_at(self, place="stdio", *, transport=None, workers=1, **options):
        served.append(self)
        return run(self, at, workers=workers, **options_at(place, transport, options))

    def serve_on_loop(self, place="stdio", *, transport=None, **options):
        served.append(self)
        return serve(self, at, **options_at(place, transport, options))

    Server.run, Server.serve = run_at, serve_on_loop
    return served


class WatchedInput:
    """Standard input that was over before the program began. It records whether the program reads it."""

    is_read = False

    def __init__(self, file):
        self.file = file

    def __getattr__(self, name):
        if name in ("buffer", "detach", "fileno", "read", "readline", "readlines"):
            self.is_read = True
        return getattr(self.file, name)

    def __iter__(self):
        self.is_read = True
        return iter(self.file)


def has_served(watched):
    """Returns whether the program has read standard input until its end, as a server does."""
    if watched is None:
        return input_is_over()
    # Gudgeon's servers read the descriptor.
    return watched.is_read or "gudgeon._serving.stdio" in sys.modules


def input_is_over():
    """Returns whether standard input has nothing more to read."""
    try:
        import fcntl
        import select
        import termios

        if os.isatty(0) or not select.select([0], [], [], 0)[0]:
            return False
        waiting = bytearray(4)
        fcntl.ioctl(0, termios.FIONREAD, waiting)
        return not any(waiting)
    except (ImportError, OSError):
        # Gudgeon closes standard input once it has served it.
        return True


def fail(message, hint):
    print(f"error: {message}\n  hint: {hint}", file=sys.stderr, flush=True)
    sys.exit(2)


main()
