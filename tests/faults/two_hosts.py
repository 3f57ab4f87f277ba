# SPDX-License-Identifier: BSD-3-Clause
"""Two hosts on this machine, with a network between them that can part, or lose packets.

A host is a network namespace with a host name of its own. The cable is a process, this file as a program: it carries each
frame from the one TAP device to the other, or drops it. That takes root, or its capabilities, and /dev/net/tun.
"""
import contextlib
import ctypes
import fcntl
import os
import random
import select
import struct
import subprocess
import sys
import threading
from pathlib import Path

ADDRESSES = ["10.99.0.1", "10.99.0.2"]
# Messages by TCP alone, also between ranks of one host.
MPIRUN = ["mpirun", "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "10.99.0.0/24", "--mca", "oob_tcp_if_include", "10.99.0.0/24"]
# A daemon of mpirun's ends, with its ranks, when TCP tells it that the other is lost. Hasty hosts do so after these seconds of
# questions where their connection is idle, and after UNANSWERED repetitions, 6 seconds, where something was sent. The settings
# of Open MPI and of Linux are 5 minutes and a quarter of an hour.
HASTY = ["--mca", "oob_tcp_keepalive_time", "5", "--mca", "oob_tcp_keepalive_intvl", "1", "--mca", "oob_tcp_keepalive_probes", "3"]
UNANSWERED = 4


def tap_of(pid, name):
    """A TAP device in the network namespace of a process, made by a thread that enters it and ends there."""
    TUNSETIFF, IFF_TAP, IFF_NO_PI, CLONE_NEWNET = 0x400454CA, 0x0002, 0x1000, 0x40000000
    made = []

    def make():
        try:
            libc = ctypes.CDLL(None, use_errno=True)
            with open(f"/proc/{pid}/ns/net", "rb") as namespace:
                if libc.setns(namespace.fileno(), CLONE_NEWNET) != 0:
                    raise OSError(ctypes.get_errno(), "setns")
            device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
            try:
                fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TAP | IFF_NO_PI))
            except OSError:
                os.close(device)
                raise
            made.append(device)
        except OSError as error:
            made.append(error)
    thread = threading.Thread(target=make)
    thread.start()
    thread.join()
    if isinstance(made[0], OSError):
        raise made[0]
    return made[0]


class TwoHosts:
    """with TwoHosts(folder) as hosts: hosts.mpirun is a command that starts half of the ranks on each. OSError where there can be none."""

    def __init__(self, folder, loss=0.0, seed=0, hasty=False):
        self.folder, self.loss, self.seed, self.hasty = Path(folder), loss, seed, hasty
        self.dropped = None  # frames, known at the end; negative where the cable broke
        self.hosts, self.taps, self.cable = [], [], None
        self.mpirun = self.folder / "mpirun"

    def __enter__(self):
        try:
            for number, address in enumerate(ADDRESSES):
                # A host lives until its input ends, which it does with this process.
                host = subprocess.Popen(["unshare", "--net", "--uts", "sh", "-c", f"hostname host{number} && echo ready && read _"],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                self.hosts.append(host)
                if host.stdout.readline() != "ready\n":
                    raise OSError(f"no namespaces: {host.stderr.read().strip()}")
                self.taps.append(tap_of(host.pid, "cable"))
                for command in (["lo", "up"], ["cable", "up"]):
                    subprocess.run([*self.entering(number), "ip", "link", "set", *command], check=True)
                subprocess.run([*self.entering(number), "ip", "addr", "add", f"{address}/24", "dev", "cable"], check=True)
                if self.hasty:
                    subprocess.run([*self.entering(number), "sh", "-c", f"echo {UNANSWERED} > /proc/sys/net/ipv4/tcp_retries2"], check=True)
            self.cable = subprocess.Popen([sys.executable, __file__, *map(str, self.taps), str(self.loss), str(self.seed)],
                                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=self.taps)
        except (OSError, subprocess.CalledProcessError) as error:
            self.__exit__()
            raise OSError(str(error)) from error
        self.write("agent", '# As ssh: agent [-OPTION…] HOST COMMAND…\nwhile [ "${1#-}" != "$1" ]; do shift; done\nshift\n'
                   f'exec {" ".join(self.entering(1))} sh -c "cd {self.folder} && $*"')
        mpirun = [*self.entering(0), *MPIRUN, *(HASTY if self.hasty else [])]
        self.write("mpirun", f'exec {" ".join(mpirun)} --mca plm_rsh_agent {self.folder}/agent '
                   f'--host {ADDRESSES[0]}:2,{ADDRESSES[1]}:2 "$@"')
        return self

    def part(self):
        self.cable.stdin.write(b"part\n")
        self.cable.stdin.flush()

    def __exit__(self, *_):
        if self.cable:
            self.dropped = int(self.cable.communicate()[0] or -1)
        for tap in self.taps:
            os.close(tap)
        for host in self.hosts:
            host.communicate("\n")

    def entering(self, number):
        return ["nsenter", "-t", str(self.hosts[number].pid), "--net", "--uts"]

    def write(self, name, text):
        path = self.folder / name
        path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        path.chmod(0o755)


def carry(taps, loss, chance):
    """Until the input ends. Each line of it parts the hosts. The number of dropped frames."""
    other = dict(zip(taps, reversed(taps)))
    is_parted, dropped = False, 0
    while True:
        ready = select.select([*taps, 0], [], [])[0]
        if 0 in ready:
            if not os.read(0, 100):
                return dropped
            is_parted = True
        for tap in ready:
            if tap == 0:
                continue
            frame = os.read(tap, 65536)
            if is_parted or chance.random() < loss:
                dropped += 1
                continue
            try:
                os.write(other[tap], frame)
            except OSError:  # a device that is full drops the frame
                dropped += 1


if __name__ == "__main__":
    with contextlib.suppress(PermissionError):
        os.nice(-15)  # a cable does not wait for a processor
    print(carry([int(word) for word in sys.argv[1:3]], float(sys.argv[3]), random.Random(float(sys.argv[4]))))
