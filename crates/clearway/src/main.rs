//! The one binary. Each command is a file; what they share is here: the allocator and the exit code. A server has its log
//! (`server_log`).
//!
//! | command | file |
//! | --- | --- |
//! | `init` | `init.rs` |
//! | `cert` | `cert.rs` |
//! | `serve` | `serve.rs` |
//! | `status`, `stop`, `reload` | `running_server.rs` |
//! | `standby`, `promote`, `rewind` | `standby.rs`, `promote.rs`, `rewind.rs` |
//! | `node`, `cluster` | `node.rs`, `node_database.rs`, `node_directory.rs`, `node_following.rs`, `cluster.rs` |
//! | `config` | `config.rs` |
//! | `bench` | `bench.rs`, `bench_latches.rs`, `bench_server.rs` |
//! | `check` | `check.rs` |
//! | `mechanisms` | `mechanisms.rs` |
//! | `simulate` | `simulate.rs`, `simulate_machine.rs` |
//! | `advise` | `advise.rs` |
//! | `report` | `report.rs` |
//! | `preload` | `preload/` |
//! | `completions`, `man` | `completions.rs`, `man.rs` |
//! | `stub-server` (hidden) | `stub_server.rs` |
//! | `other-program` (hidden) | `other_program.rs` |

#![forbid(unsafe_code)]

mod advise;
mod allocator;
mod bench;
mod bench_latches;
mod bench_server;
mod cert;
mod check;
mod cluster;
mod completions;
mod config;
mod error;
mod etcd_options;
mod init;
mod man;
mod mechanisms;
mod metrics;
mod node;
mod node_database;
mod node_directory;
mod node_following;
mod options;
mod other_program;
mod output;
mod preload;
mod promote;
mod recover;
mod report;
mod rewind;
mod role;
mod running_server;
mod serve;
mod served;
mod server_log;
mod signals;
mod simulate;
mod simulate_machine;
mod standby;
mod stub_server;
mod supervisor;
mod top;
mod written_settings;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use tracing_subscriber::EnvFilter;

/// The concurrency core of an OLTP database: an engine to run pgbench against, and a laboratory to see where its time
/// goes.
#[derive(Debug, Parser)]
#[command(
    name = "clearway",
    version,
    after_help = "Examples:\n  \
        clearway bench                              what this machine does, in about three minutes\n  \
        clearway serve --data /var/tmp/clearway     then: psql -h 127.0.0.1 -p 5433 postgres\n  \
        clearway top                                what its sessions do and wait for\n  \
        clearway check --data /var/tmp/clearway     is everything in it sound?\n  \
        clearway standby --from 'host=127.0.0.1 port=5433' --data /var/tmp/standby   a copy that answers reads\n  \
        clearway mechanisms --why                   what --set can switch, and why the default is what it is\n  \
        clearway simulate list                      experiments on machines one does not own\n  \
        clearway advise cloud-16 --out clearway.toml    which mechanisms for a machine, by simulation\n  \
        clearway report --compare before after      two results side by side\n  \
        clearway preload --report stderr -- pigz -p 4 big   which of its locks any program waits for\n\n\
        CLEARWAY_LOG=debug shows more of what happens (error, warn, info, debug, trace); a server has log_min_messages."
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Init(init::Arguments),
    Cert(cert::Arguments),
    Serve(serve::Arguments),
    Standby(standby::Arguments),
    Status(running_server::StatusArguments),
    Stop(running_server::StopArguments),
    Reload(running_server::ReloadArguments),
    Top(top::Arguments),
    Promote(promote::Arguments),
    Rewind(rewind::Arguments),
    Recover(recover::Arguments),
    Node(node::Arguments),
    Cluster(cluster::Arguments),
    Config(config::Arguments),
    Bench(bench::Arguments),
    Check(check::Arguments),
    Mechanisms(mechanisms::Arguments),
    Simulate(simulate::Arguments),
    Advise(advise::Arguments),
    Report(report::Arguments),
    Preload(preload::Arguments),
    Completions(completions::Arguments),
    Man(man::Arguments),
    StubServer(stub_server::Arguments),
    OtherProgram(other_program::Arguments),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    allocator::install();
    if !allocator::has_enough() {
        output::notice(format_args!(
            "out of memory: give the process more address space (ulimit -v)"
        ));
        return ExitCode::FAILURE;
    }
    let serves = matches!(
        arguments.command,
        Command::Serve(_) | Command::Standby(_) | Command::Node(_)
    );
    if !serves {
        let level = EnvFilter::try_from_env("CLEARWAY_LOG").unwrap_or_else(|_| EnvFilter::new("warn"));
        tracing_subscriber::fmt()
            .with_env_filter(level)
            .with_writer(|| output::StandardError)
            .init();
    } else if let Err(error) = server_log::begin() {
        output::last_error(&error);
        return ExitCode::FAILURE;
    }
    // A program that is run has the limit that its user gave it.
    if !matches!(arguments.command, Command::Preload(_)) {
        clearway_storage::descriptors::raise_limit();
    }
    let outcome = match &arguments.command {
        Command::Init(arguments) => init::run(arguments),
        Command::Cert(arguments) => cert::run(arguments),
        Command::Serve(arguments) => serve::run(arguments),
        Command::Standby(arguments) => standby::run(arguments),
        Command::Status(arguments) => running_server::status(arguments),
        Command::Stop(arguments) => running_server::stop(arguments),
        Command::Reload(arguments) => running_server::reload(arguments),
        Command::Top(arguments) => top::run(arguments),
        Command::Promote(arguments) => promote::run(arguments),
        Command::Rewind(arguments) => rewind::run(arguments),
        Command::Recover(arguments) => recover::run(arguments),
        Command::Node(arguments) => node::run(arguments),
        Command::Cluster(arguments) => cluster::run(arguments),
        Command::Config(arguments) => config::run(arguments),
        Command::Bench(arguments) => bench::run(arguments),
        Command::Check(arguments) => check::run(arguments),
        Command::Mechanisms(arguments) => mechanisms::run(arguments),
        Command::Simulate(arguments) => simulate::run(arguments),
        Command::Advise(arguments) => advise::run(arguments),
        Command::Report(arguments) => report::run(arguments),
        Command::Preload(arguments) => preload::run(arguments),
        Command::Completions(arguments) => completions::run(arguments, &Arguments::command()),
        Command::Man(arguments) => man::run(arguments, Arguments::command()),
        Command::StubServer(arguments) => stub_server::run(arguments),
        Command::OtherProgram(arguments) => other_program::run(arguments),
    };
    let code = match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::last_error(&error);
            ExitCode::from(error.exit_code())
        }
    };
    server_log::end();
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Arguments::command().debug_assert();
    }
}
