# SPDX-License-Identifier: BSD-3-Clause
"""A site file of ReFrame to begin with: this machine with mpirun, and a cluster with Slurm. Copy it and change the second system: its
host names, the options of a job, and what must be loaded (https://reframe-hpc.readthedocs.io/en/stable/config_reference.html).

    GRIDLOPS_PROGRAMS=$PWD/build reframe -C bench/reframe/site.py --system here -c bench/reframe -r"""

ENVIRONMENTS = [{"name": "built"}]  # the programs are built already

site_configuration = {
    "systems": [
        {
            "name": "here",
            "descr": "This machine, with more ranks than cores if need be",
            "hostnames": [".*"],
            "partitions": [{
                "name": "all",
                "scheduler": "local",
                "launcher": "mpirun",
                "environs": ["built"],
                "max_jobs": 1,  # at the same time, since they would slow each other down
                "env_vars": [["OMPI_MCA_rmaps_base_oversubscribe", "1"], ["PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe"],
                             ["OMPI_ALLOW_RUN_AS_ROOT", "1"], ["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"]],
            }],
        },
        {
            "name": "cluster",
            "descr": "Slurm, a rank on each core, nodes to oneself",
            "hostnames": ["login[0-9]+"],
            "partitions": [{
                "name": "short",
                "scheduler": "slurm",
                "launcher": "srun",
                "access": ["--partition=short", "--exclusive", "--mem=0"],
                "environs": ["built"],
                "max_jobs": 20,
                "modules": [],  # such as openmpi/4.1
            }],
        },
    ],
    "environments": ENVIRONMENTS,
}
