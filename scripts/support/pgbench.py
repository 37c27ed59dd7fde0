"""Servers filled by `pgbench -i`, to be measured in turns: Clearway's, PostgreSQL's, and the stub."""

from . import interleaved, postgres_programs, servers, tools


def options(parser):
    """Adds the options that say which servers there are and what they hold."""
    parser.add_argument("--scale", type=interleaved.at_least_one, default=10)
    parser.add_argument("--postgres", type=interleaved.names_of(postgres_programs.VERSIONS), default=["18"], metavar="N,…",
                        help=f"major versions, of {', '.join(postgres_programs.VERSIONS)}; without it 18")


def prepare(server):
    """Between two runs: no history to carry along, nothing left to write."""
    if server.name != "stub":
        server.sql("truncate pgbench_history")
        server.sql("vacuum pgbench_branches")
        server.sql("vacuum pgbench_tellers")
        server.sql("checkpoint")


def start_all(name, arguments, with_stub=True):
    """The servers, started and filled: the stub, which holds nothing, PostgreSQL's, and Clearway's. `name`: of their directory."""
    binary = tools.build()
    directory = servers.scratch(name)
    ours = interleaved.clearways(binary, directory, arguments)
    theirs = []
    for version in arguments.postgres:
        home = directory / f"postgres-{version}"
        home.mkdir()
        theirs.append(servers.Postgres(home, [("shared_buffers", f"{arguments.buffers}MB")], version))
        theirs[-1].name = f"PostgreSQL {version}"
    for server in (*theirs, *ours):
        interleaved.start(server)
        print(f"loading scale {arguments.scale} into {server.name}", flush=True)
        server.run("pgbench", "-i", "-q", "-s", arguments.scale)
    if not with_stub:
        return [*theirs, *ours]
    (directory / "stub").mkdir()
    stub = servers.Stub(binary, directory / "stub")
    interleaved.start(stub)
    return [stub, *theirs, *ours]
