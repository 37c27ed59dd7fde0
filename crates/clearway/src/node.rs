//! `clearway node`: a server that is a member of a cluster, and leads it or follows the node that leads.
//!
//! Etcd decides which of both (`clearway_node::decision`). Server and node are one process, so that a session looks
//! at the lease itself before it answers.
//!
//! A primary that may be none any more answers nothing, tells its sessions so, and *begins anew*: the process executes its own
//! program again, with the same process id and arguments. Memory, threads and the directory's lock are as after kill -9, and
//! nothing more is logged. The same when it has handed over, and when its directory has to be copied again. A node that was
//! asked to end does not begin anew, unless the signal comes in the moment between the last look and the execution.

use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use clearway_node::checks;
use clearway_node::decision::Options;
use clearway_node::run::{self, Ended, Shown};
use clearway_server::{AnswerDeadline, Server, StopSignal};

use crate::error::{CommandError, Result};
use crate::etcd_options::{EtcdArguments, check_name};
use crate::metrics::MetricsPage;
use crate::node_database::{NodeDatabase, NodeDatabaseOptions};
use crate::node_directory::NodeDirectory;
use crate::options::{duration, keep_private};
use crate::output::notice;
use crate::serve::{OnPanic, addresses, bind};
use crate::served::{LISTEN, ServedOptions};
use crate::server_log;
use crate::signals::{OnHangUp, handle_signals, survive_file_size_limit};

/// The time that sessions have to be told that they end.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// The shortest time to live: etcd's own elections take a second.
const TTL_MIN: Duration = Duration::from_secs(2);
/// The longest: no other node takes over for so long.
const TTL_MAX: Duration = Duration::from_secs(3_600);

/// Run a member of a cluster, whose primary is agreed through etcd
///
/// The first node makes the database; the others copy it, and follow the node that leads. When that one fails, is stopped or
/// cut off, the standby that has most of its log leads in its place, and the old one answers nothing any more, from before
/// that on. With --synchronous, commits wait for standbys, and only such a one is promoted: nothing that was acknowledged is
/// lost. A node that led before is rewound if it has log that the new one has not: what only it has is given up. Where that
/// cannot be done it copies the database anew; the old directory stays beside, with ".former" behind its name.
#[derive(Debug, Args)]
#[command(after_help = "Example, on each of three machines:\n  \
    clearway node --etcd https://etcd1:2379,https://etcd2:2379,https://etcd3:2379 --etcd-cacert ca.crt \\\n    \
    --cluster shop --name berlin --data /var/lib/clearway --listen 0.0.0.0:5433 \\\n    \
    --advertise 'host=berlin.example.org port=5433 user=copy sslmode=verify-full' \\\n    \
    --follow-with 'passfile=/etc/clearway/pass sslrootcert=/etc/clearway/ca.crt' --synchronous 1 --checks 0.0.0.0:8008")]
pub(crate) struct Arguments {
    #[command(flatten)]
    etcd: EtcdArguments,
    /// Name of this node, which no other node of the cluster has
    #[arg(long, value_name = "NAME")]
    name: String,
    /// Connection string by which other nodes follow this one: 'host=… port=… user=…'; if not given, the address of --listen
    #[arg(long, value_name = "CONNINFO")]
    advertise: Option<String>,
    /// Words that this node adds when it connects to others, such as 'passfile=… sslrootcert=…'
    #[arg(long, value_name = "CONNINFO", default_value = "")]
    follow_with: String,
    /// Address for the checks of load balancers: /primary, /replica?lag=16MB, /health
    #[arg(long, value_name = "ADDRESS:PORT")]
    checks: Option<String>,
    /// Time for which a node that leads may answer without etcd, and after which another one takes over
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    ttl: Duration,
    /// Number of standbys that commits wait for; the same on each node
    #[arg(long, value_name = "N", default_value_t = 0)]
    synchronous: usize,
    #[command(flatten)]
    served: ServedOptions,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    check_name("node", &arguments.name)?;
    if !(TTL_MIN..=TTL_MAX).contains(&arguments.ttl) {
        return Err(CommandError::Usage(format!(
            "--ttl is {TTL_MIN:?} to {TTL_MAX:?}, not {:?}",
            arguments.ttl
        )));
    }
    let served = arguments.served.clone();
    let data = served.data()?;
    let config = served.load(&data, &data, LISTEN)?;
    server_log::configure(&config);
    keep_private(&data, config.allow_group_access)?;
    let mut etcd = arguments.etcd.client(etcd_patience(arguments))?;
    let on_hang_up = OnHangUp::default();
    let stop = handle_signals(on_hang_up.clone())?;
    survive_file_size_limit()?;
    let deadline = AnswerDeadline::default();
    let directory = NodeDirectory::new(&data, &config)?;
    // The file of ALTER SYSTEM may only now be where it belongs, and is in the former directory until there is a copy.
    let config = served.load(&data, &directory.of_clients_files()?, LISTEN)?;
    server_log::configure(&config);
    let directory = NodeDirectory::new(&data, &config)?;
    let server = bind(
        arguments.served.port,
        &directory.of_clients_files()?,
        &config,
        Some(deadline.clone()),
    )?;
    let metrics = MetricsPage::listen(&config.metrics_listen)?;
    let server_stop = StopSignal::new().map_err(CommandError::io("creating the stop signal"))?;
    let database = Arc::new(NodeDatabase::new(NodeDatabaseOptions {
        name: arguments.name.clone(),
        directory,
        load: Arc::new(move || served.load(&data, &data, LISTEN)),
        config,
        follow_with: arguments.follow_with.clone(),
        deadline,
        stop: stop.clone(),
        server_stop: server_stop.clone(),
        on_hang_up,
        metrics,
    })?);
    let shown = Arc::new(Shown::default());
    if let Some(address) = &arguments.checks {
        let (database, shown) = (Arc::clone(&database), Arc::clone(&shown));
        checks::serve(address, move || database.checked(&shown))?;
    }
    let options = options(arguments, &server)?;
    thread::scope(|scope| {
        let running = scope.spawn(|| {
            let _panic_ends_the_node = database.failed_by_panic("the server");
            let outcome = server.run(&server_stop);
            database.server_has_ended(&outcome);
            outcome
        });
        let working = scope.spawn(|| {
            let _panic_ends_the_node = database.failed_by_panic("the thread of its database");
            database.work(&server);
        });
        let end_all = || {
            database.end_work();
            server_stop.stop();
        };
        let _on_panic = OnPanic(&end_all);
        let ended = run::run(options, &mut etcd, &*database, &shown);
        database.answer_until_the_end(&ended);
        let mut failure = None;
        let again = match ended {
            Ended::Fenced(reason) => {
                end_all();
                return begin_anew(
                    &format!("this node does not lead any more: {reason}"),
                    || running.is_finished(),
                    &stop,
                );
            }
            Ended::HandedOver => Some("this node has handed over"),
            Ended::CopyAnew => Some("the directory is to be copied anew"),
            Ended::Asked => None,
            Ended::Failed(problem) => {
                // A copy that has begun ends too.
                stop.stop();
                failure = Some(CommandError::Node(problem));
                None
            }
        };
        if let Some(reason) = again.filter(|_| !stop.is_stopped()) {
            end_all();
            return begin_anew(reason, || running.is_finished(), &stop);
        }
        // The engine is not closed under a receiver that writes.
        database.end_work();
        let _ = working.join();
        server_stop.stop();
        match running.join() {
            Ok(outcome) => failure.map_or(outcome.map_err(CommandError::from), Err)?,
            Err(panic) => std::panic::resume_unwind(panic),
        }
        notice(format_args!("shut down"));
        Ok(())
    })
}

/// The time that each endpoint of etcd has for an answer: if none answers, less than half of the time to live is gone.
fn etcd_patience(arguments: &Arguments) -> Duration {
    let endpoints = u32::try_from(arguments.etcd.endpoints()).unwrap_or(u32::MAX / 2);
    arguments.ttl / endpoints.saturating_mul(2).saturating_add(1)
}

/// The options of the decisions.
fn options(arguments: &Arguments, server: &Server) -> Result<Options> {
    let conninfo = match (&arguments.advertise, server.local_addr()) {
        (Some(given), _) => given.clone(),
        (None, Some(address)) => format!("host={} port={}", address.ip(), address.port()),
        (None, None) => {
            return Err(CommandError::Usage(
                "other nodes need an address: give --listen or --advertise".to_owned(),
            ));
        }
    };
    let ttl_ns = u64::try_from(arguments.ttl.as_nanos()).unwrap_or(u64::MAX);
    notice(format_args!(
        "node {}: listening on {}",
        arguments.name,
        addresses(server).join(", ")
    ));
    Ok(Options {
        name: arguments.name.clone(),
        instance: rand::random(),
        conninfo,
        checks: arguments.checks.clone(),
        ttl_ns,
        interval_ns: ttl_ns / 10,
        synchronous: arguments.synchronous,
    })
}

/// Executes this program again, once the sessions have been told, or had the time for it. If the node is to end, it ends.
fn begin_anew(reason: &str, told: impl Fn() -> bool, stop: &StopSignal) -> Result<()> {
    notice(format_args!("{reason}"));
    let until = Instant::now() + LAST_WORDS;
    while !told() && Instant::now() < until {
        thread::sleep(Duration::from_millis(10));
    }
    let again = std::env::args_os().skip(1).collect::<Vec<_>>();
    notice(format_args!("beginning anew, unless it is to end"));
    // The scope would wait for threads that may never end.
    if stop.is_stopped() {
        notice(format_args!(
            "stopped without a checkpoint; the next start recovers from the log"
        ));
        server_log::end();
        std::process::exit(0);
    }
    server_log::end();
    let error = Command::new("/proc/self/exe").args(again).exec();
    // Not reached unless it failed.
    notice(format_args!("could not begin anew: {error}"));
    server_log::end();
    std::process::exit(1);
}
