# SPDX-License-Identifier: BSD-3-Clause
"""The driver's side of worker.py: processes that are started when they are needed, watched, and started anew when they are lost."""
import multiprocessing.connection
import os
import pickle
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
LAUNCH = HERE.parent / "support" / "launch"


class Lost(Exception):
    """The worker died of a case, or did not answer in time. `how` says which."""

    def __init__(self, how, text):
        super().__init__(f"{how}: {text}")
        self.how = how


class Worker:
    """Ranks that wait for cases."""

    def __init__(self, build, ranks, folder):
        self.errors = Path(folder) / f"worker-{ranks}.err"
        address = str(Path(folder) / f"worker-{ranks}.socket")
        Path(address).unlink(missing_ok=True)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(build) / "apps" / "python"), str(HERE)]),
                       "GRIDLOPS_TIMEOUT": "0", "HWLOC_HIDE_ERRORS": "2"}
        with multiprocessing.connection.Listener(address) as listener, open(self.errors, "w", encoding="utf-8") as errors:
            self.process = subprocess.Popen([str(LAUNCH), str(ranks), sys.executable, str(HERE / "worker.py"), address],
                                            stdout=errors, stderr=errors, env=environment, start_new_session=True)
            listener._listener._socket.settimeout(300)  # a worker that never comes up is an error, not a wait
            try:
                self.socket = listener.accept()
            except OSError as error:
                self.kill()
                raise SystemExit(f"campaign: a worker of {ranks} ranks did not start: {error}\n{self.tail()}") from error

    def call(self, task, request, seconds):
        """The reply; Lost if there is none."""
        try:
            self.socket.send((task, request))
            if not self.socket.poll(seconds):
                raise Lost("hang", f"no reply within {seconds} s")
            return self.socket.recv()
        except (EOFError, OSError) as error:
            self.kill()
            raise Lost("crash", self.tail()) from error
        except Lost:
            self.kill()
            raise

    def tail(self):
        return self.errors.read_text(encoding="utf-8", errors="replace")[-3000:]

    def close(self):
        try:
            self.socket.send_bytes(pickle.dumps(None))
            self.process.wait(30)
        except (OSError, subprocess.TimeoutExpired):
            self.kill()

    def kill(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()


class Workers:
    """One worker for each number of ranks."""

    def __init__(self, build, seconds=60):
        self.build, self.seconds = build, seconds
        self.folder = tempfile.TemporaryDirectory(prefix="gridlops-campaign-")
        self.running = {}

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        for worker in self.running.values():
            worker.close() if kind is None else worker.kill()
        self.folder.cleanup()

    def call(self, ranks, task, request):
        try:
            return self.worker(ranks).call(task, request, self.seconds)
        except Lost as lost:
            del self.running[ranks]
            if lost.how == "crash":
                raise
        try:  # a busy machine is no hang
            return self.worker(ranks).call(task, request, 4 * self.seconds)
        except Lost:
            del self.running[ranks]
            raise

    def worker(self, ranks):
        if ranks not in self.running:
            self.running[ranks] = Worker(self.build, ranks, self.folder.name)
        return self.running[ranks]
