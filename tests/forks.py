"""Python processes that start clean and at once: forks of a server that has imported everything.

A fork of the process that runs the tests would inherit OpenMP threads that do not run in it, and
would wait for them at the first parallel loop; a process of its own spends seconds on imports. The
server has imported everything and computed nothing, so that a fork of it is as good as new.
What it has imported is frozen: a fork that collects garbage does not walk through it.
"""

import atexit
import multiprocessing
import os
import runpy
import signal
import sys
import tempfile
import time
import types
import weakref
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")  # no debugger looks at the server
SERVER = multiprocessing.get_context("forkserver")
IMPORTED = """
    torch torchvision timm numpy scipy.stats scipy.optimize scipy.spatial scipy.sparse.linalg
    scipy.special pandas sklearn.linear_model sklearn.manifold sklearn.mixture sklearn.datasets
    sklearn.neighbors sklearn.cluster sklearn.discriminant_analysis safetensors.torch filelock
    psutil tqdm.auto tabulate matplotlib.pyplot seaborn PIL.Image fastcore.test nbdev.showdoc
    ipykernel.kernelapp ipykernel.ipkernel ipykernel.debugger IPython.core.completerlib
    IPython.extensions.storemagic pytest nbformat sphinx.cmd.build
"""
NEEDLESS = "rfc3987_syntax"  # a grammar of addresses: jsonschema offers it, and it takes a second


def rooms():
    "The modules of the library, as they are imported."
    files = (ROOT / "taskpriors").rglob("*.py")
    names = [".".join(file.relative_to(ROOT).with_suffix("").parts) for file in files]
    return sorted(name for name in names if not name.endswith(("__init__", "_modidx")))


SERVER.set_forkserver_preload(["frozen"])


def run_python(argv, cwd, env, files, anew=()):
    """What `python *argv` does, in this process: `-c code`, `-m module` or a script.

    Packages in `anew`, which read the environment when they are imported, are imported again.
    """
    os.setsid()
    multiprocessing.set_start_method(None, force=True)  # the default, as in any new process
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    sys.path[:0] = filter(None, env.get("PYTHONPATH", "").split(os.pathsep))
    for number, file in zip((1, 2), files, strict=True):
        os.dup2(os.open(file, os.O_WRONLY | os.O_APPEND), number)
    read_what_imports_have_read()
    for name in [name for name in sys.modules if name.split(".")[0] in anew]:
        del sys.modules[name]
    how, *words = argv
    sys.argv = argv if how not in ("-c", "-m") else [how, *words[1:]]
    if how == "-m":
        give_tables_the_width_of(words[0])
        runpy.run_module(words[0], run_name="__main__", alter_sys=True)
    elif how == "-c":
        main = sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(words[0], "<string>", "exec"), main.__dict__)
    else:
        sys.path.insert(0, str(Path(how).resolve().parent))
        runpy.run_path(how, run_name="__main__")


def read_what_imports_have_read():
    "Variables of the environment that libraries read when they are imported."
    import matplotlib
    import torch

    if "MPLBACKEND" in os.environ:
        matplotlib.rcParams["backend"] = os.environ["MPLBACKEND"]
    if "OMP_NUM_THREADS" in os.environ:
        torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))


def give_tables_the_width_of(module):
    "When it is imported, pandas decides whether it prints to a terminal or into a notebook."
    import pandas

    pandas.set_option("display.max_columns", 20 if "ipykernel" in module else 0)


STARTED = weakref.WeakSet()


@atexit.register
def end_what_runs():
    "A failed test leaves its process behind, and this one would wait for it."
    for process in STARTED:
        if process.poll() is None:
            process.kill()


class Python:
    "A process that runs `python *argv`, with the methods of `subprocess.Popen` that tests use."

    stdin = stdout = stderr = None

    def __init__(self, *argv, cwd=".", env=None, anew=()):
        self.folder = tempfile.TemporaryDirectory()
        self.files = [Path(self.folder.name) / name for name in ("out", "err")]
        for file in self.files:
            file.touch()
        argv, env = [str(word) for word in argv], {**os.environ, **(env or {})}
        env = {name: str(value) for name, value in env.items() if value is not None}
        given = argv, str(cwd), env, [str(file) for file in self.files], anew
        self.process = SERVER.Process(target=run_python, args=given)
        self.process.start()
        STARTED.add(self)
        self.pid = self.process.pid
        while self.poll() is None and not self.margins_its_group():
            time.sleep(0.001)

    def margins_its_group(self):
        "Only then does a signal to its group spare the group of the tests."
        try:
            return os.getpgid(self.pid) == self.pid
        except ProcessLookupError:
            return False

    @property
    def returncode(self):
        return self.process.exitcode

    def poll(self):
        return self.process.exitcode

    def wait(self):
        self.process.join()
        return self.process.exitcode

    def communicate(self):
        "What it wrote to standard output and to standard error, once it has ended."
        self.wait()
        return tuple(file.read_text(encoding="utf-8") for file in self.files)

    def send_signal(self, number):
        os.kill(self.pid, number)

    def kill(self):
        self.send_signal(signal.SIGKILL)

    def wait_until(self, condition):
        "Wait for a condition that comes true while the process runs."
        while not condition():
            assert self.poll() is None, f"ended too early: {self.communicate()}"
            time.sleep(0.005)


def run_to_the_end(*argv, cwd=".", env=None, anew=()):
    "Exit status, standard output and standard error of `python *argv`."
    process = Python(*argv, cwd=cwd, env=env, anew=anew)
    out, err = process.communicate()
    return process.returncode, out, err


def call_in_a_fork(function, *arguments):
    "What a function returns in a process of its own; a sentence if it raises or the process dies."
    reader, writer = SERVER.Pipe(duplex=False)
    process = SERVER.Process(target=answer_through, args=(writer, function, *arguments))
    process.start()
    writer.close()
    try:
        return reader.recv()
    except EOFError:
        return "the process was killed"
    finally:
        process.join()


def answer_through(pipe, function, *arguments):
    try:
        answer = function(*arguments)
    except BaseException as e:
        answer = f"{type(e).__name__}: {e}"
    pipe.send(answer)
