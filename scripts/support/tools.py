"""Finding, and when missing installing, the programs that the scripts drive."""

import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Where Debian keeps the server programs of PostgreSQL, which are not on PATH.
POSTGRES_BIN = pathlib.Path("/usr/lib/postgresql/15/bin")

# The Debian package of each program.
PACKAGES = {
    "psql": "postgresql-client-15",
    "tmux": "tmux",
    "systemd-analyze": "systemd",
    "pg_dump": "postgresql-client-15",
    "pgbench": "postgresql-15",
    "pg_basebackup": "postgresql-client-15",
    "pg_receivewal": "postgresql-client-15",
    "pg_verifybackup": "postgresql-client-15",
    "initdb": "postgresql-15",
    "postgres": "postgresql-15",
    "sysbench": "sysbench",
    # Not mariadb-server, which would start a server of its own on installation.
    "mariadbd": "mariadb-server-core",
    "mariadb-install-db": "mariadb-server-core",
    # mariadb-install-db calls it.
    "my_print_defaults": "mariadb-client-core",
    "setpriv": "util-linux",
    "ip": "iproute2",
    "etcd": "etcd-server",
    "etcdctl": "etcd-client",
    "openssl": "openssl",
    "haproxy": "haproxy",
    "prometheus": "prometheus",
    "promtool": "prometheus",
    "mariadb": "mariadb-client-core",
    "memcached": "memcached",
    "memcslap": "libmemcached-tools",
    "redis-server": "redis-server",
    "redis-benchmark": "redis-tools",
    "pigz": "pigz",
    "xz": "xz-utils",
    "sort": "coreutils",
}


def find(program):
    """The path of a program, or None."""
    in_postgres = POSTGRES_BIN / program
    # A user's PATH may lack /usr/sbin, where mariadbd is.
    return str(in_postgres) if in_postgres.exists() else shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin")


def need(*programs):
    """Makes sure that these programs exist; installs their packages otherwise. A program that cannot be had ends it."""
    packages = sorted({PACKAGES[program] for program in programs if find(program) is None})
    if packages:
        install(packages)
    for program in programs:
        if find(program) is None:
            sys.exit(f"{program} is missing, and installing {PACKAGES[program]} did not bring it")


def install(packages):
    """Installs Debian packages."""
    print(f"installing {' '.join(packages)}", flush=True)
    if shutil.which("apt-get") is None:
        sys.exit(f"no apt-get here: please install {' '.join(packages)} yourself")
    # Debian's PostgreSQL would start a server of its own on installation; we start ours where we want them.
    policy = pathlib.Path("/etc/postgresql-common/createcluster.conf")
    environment = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    sudo = [] if os.geteuid() == 0 else ["sudo"]
    if not policy.exists() and os.geteuid() == 0:
        policy.parent.mkdir(parents=True, exist_ok=True)
        policy.write_text("create_main_cluster = false\n")
    subprocess.run([*sudo, "apt-get", "update", "-qq"], env=environment, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(
        [*sudo, "apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages],
        env=environment,
        check=True,
        stdout=subprocess.DEVNULL,
    )


def build():
    """Builds the release binary; its path."""
    given = os.environ.get("CLEARWAY_BINARY")
    if given:
        return pathlib.Path(given)
    subprocess.run(["cargo", "build", "--release", "--quiet", "-p", "clearway"], cwd=ROOT, check=True)
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return target / "release" / "clearway"
