# The next process of a program, before there is a next generation: it has the modules of launch.preload imported, and
# waits on descriptor 3, a socket. There it gets a byte with three descriptors: its stdout, its stderr, and a file that holds
# its environment (NAME=VALUE, each with a zero byte). Then it becomes the program, as if this had never been.
#     python OPTIONS -c THIS WHAT SCRIPT MODULES -- ARGUMENTS...    WHAT: file, module or code; MODULES: with commas
# A connection that is closed before means that nobody needs it. From here comes a "!" when it is ready, and a "+" when it becomes
# the program: until then its end is not the program's.
import os
import sys

DOOR = 3
NOT_IMPORTED, NOT_NEEDED = 77, 78  # exit codes: a module of launch.preload can't be imported; nothing came


def can_come_back(before):
    """Whether one that has stepped back from the processor may step forward again; tried where it does no harm."""
    child = os.fork()
    if not child:
        try:
            os.setpriority(os.PRIO_PROCESS, 0, 19)
            os.setpriority(os.PRIO_PROCESS, 0, before)
            os._exit(0)
        except BaseException:
            os._exit(1)
    return os.waitpid(child, 0)[1] == 0


def bring_in(modules):
    import importlib

    for name in modules:
        try:
            importlib.import_module(name)
        except BaseException as why:
            sys.stderr.write("launch.preload: %s can't be imported: %s: %s\n" % (name, type(why).__name__, why))
            sys.stderr.flush()
            os._exit(NOT_IMPORTED)


def receive(door):
    """The three descriptors; ends this process where none come."""
    import array
    import socket

    fds = array.array("i")
    try:
        door.sendall(b"!")
    except OSError:
        pass  # it was told to go before it was ready: what it is to be lies in the socket
    said, more, _, _ = door.recvmsg(1, socket.CMSG_SPACE(3 * fds.itemsize))
    for level, kind, data in more:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds.frombytes(data[: len(data) - len(data) % fds.itemsize])
    if not said or len(fds) != 3:
        os._exit(NOT_NEEDED)
    return fds


def put_on(fds):
    """What a process that was started anew would have found."""
    with os.fdopen(fds[2], "rb") as said:
        entries = said.read().split(b"\0")[:-1]
    os.environb.clear()
    for entry in entries:
        name, _, value = entry.partition(b"=")
        os.environb[name] = value
    sys.stdout.flush()
    sys.stderr.flush()
    for wanted, fd in ((1, fds[0]), (2, fds[1])):
        os.dup2(fd, wanted)
        os.close(fd)


def step_forward(priority):
    """All threads: modules have some of their own, and a priority is each one's."""
    for thread in os.listdir("/proc/self/task"):
        try:
            os.setpriority(os.PRIO_PROCESS, int(thread), priority)
        except OSError:
            pass  # it has ended


def leave(door):
    """From here on it is the program. Who is gone by now does not mind."""
    try:
        door.sendall(b"+")
    except OSError:
        pass
    door.close()


def show_without(frames, shown):
    """A traceback begins with the program's own frames, as if it had been started itself."""
    def show(kind, why, trace):
        while trace is not None and trace.tb_frame.f_code in frames:
            trace = trace.tb_next
        shown(kind, why.with_traceback(trace), trace)
    return show


def become(what, script, arguments, here):
    """The program, in the true __main__, as the interpreter runs it. What this file defined is gone from there by then."""
    import os
    import runpy
    import sys
    import zipfile
    from importlib.machinery import SourceFileLoader

    main = sys.modules["__main__"].__dict__
    for name in [name for name in main if not (name.startswith("__") and name.endswith("__"))]:
        del main[name]
    if what == "module":
        sys.argv = ["-m", *arguments]
        return runpy.run_module(script, run_name="__main__", alter_sys=True)
    if what == "code":
        sys.argv = ["-c", *arguments]
        return exec(compile(script, "<string>", "exec"), main)
    sys.argv = [script, *arguments]
    if os.path.isfile(script) and not script.endswith(".pyc") and not zipfile.is_zipfile(script):
        main.update(__file__=script, __cached__=None, __loader__=SourceFileLoader("__main__", script))
        with open(script, "rb") as source:
            code = compile(source.read(), script, "exec")
        return exec(code, main)
    if here:
        del sys.path[0]  # a folder or an archive takes that place itself
    return runpy.run_path(script, run_name="__main__")


def begin(what, script, modules, arguments):
    import socket

    os.set_inheritable(DOOR, False)
    door = socket.socket(fileno=DOOR)
    here = sys.path[:1] == [""]  # not with -I or -P
    if here and what != "code":
        sys.path[0] = os.getcwd() if what == "module" else os.path.dirname(os.path.realpath(script))
    before = os.getpriority(os.PRIO_PROCESS, 0)
    back = can_come_back(before)
    if back:
        os.setpriority(os.PRIO_PROCESS, 0, 19)
    bring_in(modules)
    put_on(receive(door))
    if back:
        step_forward(before)
    leave(door)
    sys.excepthook = show_without({begin.__code__, become.__code__, sys._getframe(1).f_code}, sys.excepthook)
    become(what, script, arguments, here)


begin(sys.argv[1], sys.argv[2], sys.argv[3].split(","), sys.argv[5:])
