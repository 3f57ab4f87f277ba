#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Ranks wait for each other in one place. So lib makes calls of MPI that block only as arguments of BlockingCall::run or
MpiTransfer::carry_out, where ranks that are watched have met before, and those of NCCL as arguments of run_watched, or of
NcclHandle::run, which calls it."""
import re

import rule

COLLECTIVE = ("Barrier|Bcast|Reduce|Allreduce|Reduce_scatter|Reduce_scatter_block|Scan|Exscan|Gather|Gatherv|Scatter|Scatterv|"
              "Allgather|Allgatherv|Alltoall|Alltoallv|Alltoallw|Neighbor_\\w+")
BLOCKING = re.compile(
    r"\bP?MPI_(" + COLLECTIVE + r"|Wait|Waitall|Waitany|Waitsome|Probe|Mprobe|Recv|Mrecv|Send|Ssend|Bsend|Rsend|Sendrecv|"
    r"Sendrecv_replace|Comm_dup|Comm_dup_with_info|Comm_split|Comm_split_type|Comm_create|Comm_create_group|"
    r"Intercomm_\w+|Cart_create|Graph_create|Dist_graph_\w+|Comm_disconnect|Comm_spawn\w*|Comm_connect|Comm_accept|"
    r"Win_(?:create|create_dynamic|allocate|allocate_shared|free|fence|lock|lock_all|unlock|unlock_all|flush\w*|start|post|"
    r"complete|wait)|File_\w+|Init|Init_thread|Finalize)\b"
    r"|\bnccl(?:Broadcast|Bcast|Reduce|AllReduce|AllGather|ReduceScatter|Send|Recv|GroupEnd|"
    r"Comm(?:Init\w+|Split|Finalize|Destroy|Abort))\b")
MEETING = ("run", "carry_out", "run_watched")
# What may block elsewhere, in one place each, and why.
ALLOWED = {
    ("lib/comm/mpi/mpi_session.cpp", "MPI_Init_thread"): "nothing can be watched before MPI runs",
    ("lib/comm/mpi/mpi_session.cpp", "MPI_Finalize"): "the session has waited for all ranks, and nothing can be watched after",
    ("lib/cuda/communicators/nccl_handle.cpp", "ncclCommSplit"): "in a function that is itself an argument of run",
    ("lib/comm/mpi/mpi_window.cpp", "MPI_Win_unlock_all"): "called by MPI_Finalize, where all ranks are",
    ("lib/comm/mpi/mpi_window.cpp", "MPI_Win_free"): "called by MPI_Finalize, where all ranks are",
}


def without_comments_and_texts(text):
    """The code, with as many characters and lines."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match[0])
    return re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', blank, text, flags=re.DOTALL)


def enclosing_calls(code, place):
    """The names of the functions within whose arguments a place is."""
    depth = 0
    for k in range(place - 1, -1, -1):
        if code[k] == ")":
            depth += 1
        elif code[k] == "(":
            if depth == 0:
                if match := re.search(r"(\w+)\s*$", code[:k]):
                    yield match[1]
            depth = max(depth - 1, 0)


def check(root):
    failures = []
    for path in filter(rule.is_cpp, rule.project_files(root)):
        if path.parts[0] != "lib":
            continue
        allowed = {name for file, name in ALLOWED if file == path.as_posix()}
        code = without_comments_and_texts(rule.read(root, path))
        for match in BLOCKING.finditer(code):
            name = match[0]
            if any(call in MEETING for call in enclosing_calls(code, match.start())):
                continue
            if name in allowed:
                allowed.remove(name)
                continue
            line = code.count("\n", 0, match.start()) + 1
            failures.append(f"{path}:{line}: {name} blocks where nothing watches; make it by BlockingCall::run or run_watched, or wait by wait_until")
    return failures


GOOD = {
    "lib/comm/a.cpp": '// MPI_Barrier(comm)\nBlockingCall(group).run("MPI_Comm_dup()", 0, MPI_Comm_dup, a, &b);\n'
                      "MPI_Ibarrier(comm, &request);\nMPI_Test(&request, &done, MPI_STATUS_IGNORE);\n",
    "lib/comm/mpi/mpi_session.cpp": "void f() { MPI_Finalize(); }\n",
    "lib/cuda/a.cpp": "run_watched(ncclGroupEnd);\nncclGroupStart();\nnccl_.run(name, ncclSend, a, b);\n",
    "tests/comm/a.cpp": "MPI_Barrier(comm);\n",
}
PLANTS = [
    ("a barrier", {"lib/comm/bad.cpp": "int a;\nvoid f() { MPI_Barrier(comm); }\n"}, "lib/comm/bad.cpp:2: MPI_Barrier"),
    ("a wait after a call that may block", {"lib/io/bad.cpp": "c.run(n, 0, [] { return 0; });\nMPI_Wait(&r, s);\n"}, ":2: MPI_Wait"),
    ("a checked receive", {"lib/comm/bad.cpp": "check(MPI_Recv(a, 1));\n"}, "MPI_Recv"),
    ("a window that a destructor frees", {"lib/comm/bad.cpp": "~A() { MPI_Win_free(&w); }\n"}, "MPI_Win_free"),
    ("the end of MPI elsewhere", {"lib/comm/bad.cpp": "MPI_Finalize();\n"}, "MPI_Finalize"),
    ("a call by address", {"lib/comm/bad.cpp": "call(MPI_Barrier, comm);\n"}, "MPI_Barrier"),
    ("an operation of NCCL", {"lib/cuda/bad.cpp": "check(ncclSend(a, b));\n"}, "ncclSend blocks"),
    ("the end of a group", {"lib/cuda/bad.cpp": "settled(ncclGroupEnd());\n"}, "ncclGroupEnd blocks"),
    ("a communicator", {"lib/cuda/bad.cpp": "MPI_Comm_split(c, 0, 0, &d);\n"}, "MPI_Comm_split"),
]

if __name__ == "__main__":
    rule.run(check, GOOD, PLANTS)
