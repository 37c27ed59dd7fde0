//! `clearway standby`: a server that follows another one.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use clap::Args;
use clearway_engine::{Config, Engine};
use clearway_server::replication::following::Following;
use clearway_server::replication::receiver::base_backup::{self, CopyProgress};
use clearway_server::replication::receiver::client::Client;
use clearway_server::replication::receiver::conninfo::ConnInfo;
use clearway_server::replication::receiver::identify;
use clearway_server::replication::receiver::run::ReceiverOptions;
use clearway_server::replication::receiver::stream::StreamOptions;
use clearway_server::{Server, StopSignal};
use indicatif::{ProgressBar, ProgressStyle};

use crate::error::{CommandError, Result};
use crate::options::ConfigOptions;
use crate::output::notice;
use crate::serve::{StopOnPanic, addresses, recovery_line, server_options};
use crate::signals::{stop_on_signals, survive_file_size_limit};

/// Follow another server, and answer reads meanwhile
///
/// Into an empty or missing directory, a base backup is taken first. Then the other server's log is received, made durable
/// and replayed, and reads are served; writes get an error (25006). When the connection is lost, it is tried again until it
/// works. Started again, the standby goes on where its log ends. "clearway promote", or "select pg_promote()", makes it a
/// server of its own.
///
/// A slot keeps the log at the other server while this one is away: name one with --slot, and make it with --create-slot.
/// There are no passwords yet: the other server is on loopback or a Unix-domain socket.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    clearway serve --data /var/tmp/primary --listen 127.0.0.1:5433\n  \
    clearway standby --from 'host=127.0.0.1 port=5433' --data /var/tmp/standby --listen 127.0.0.1:5434 \\\n      \
        --slot standby --create-slot\n\n\
    Then, in another terminal:\n  \
    psql -h 127.0.0.1 -p 5434 postgres -c 'select pg_is_in_recovery(), pg_last_wal_replay_lsn()'\n  \
    psql -h 127.0.0.1 -p 5433 postgres -c 'select * from pg_stat_replication'\n  \
    clearway promote --data /var/tmp/standby")]
pub(crate) struct Arguments {
    /// The server to follow, as libpq's programs name it: 'host=… port=… application_name=…'
    #[arg(long, value_name = "CONNINFO")]
    from: ConnInfo,
    /// Data directory
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Replication slot at the other server
    #[arg(long, value_name = "NAME")]
    slot: Option<String>,
    /// Make the slot if it is not there
    #[arg(long, requires = "slot")]
    create_slot: bool,
    /// Address to listen on, loopback only; "none" for Unix-domain sockets alone
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:5434")]
    listen: String,
    /// Directory for a Unix-domain socket, `.s.PGSQL.<port>`
    #[arg(long, value_name = "DIR")]
    socket_dir: Option<PathBuf>,
    /// Port in the Unix-domain socket's name, if it differs from that of --listen
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    port: u16,
    #[command(flatten)]
    config: ConfigOptions,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let config = arguments.config.load()?;
    let stop = stop_on_signals()?;
    survive_file_size_limit()?;
    let server = Server::bind_early(server_options(
        &arguments.listen,
        arguments.socket_dir.clone(),
        arguments.port,
        &config,
    ))?;
    thread::scope(|scope| {
        let _stop_on_panic = StopOnPanic(&stop);
        let running = scope.spawn(|| server.run(&stop));
        let following = match follow(arguments, config, &server, &stop) {
            Ok(following) => following,
            Err(error) => {
                let was_stopped = stop.is_stopped();
                stop.stop();
                let _ = running.join();
                return if was_stopped { Ok(()) } else { Err(error) };
            }
        };
        let outcome = running.join();
        // The engine is closed; its receiver would find that out by itself.
        drop(following);
        match outcome {
            Ok(outcome) => outcome?,
            Err(panic) => std::panic::resume_unwind(panic),
        }
        notice(format_args!("shut down"));
        Ok(())
    })
}

/// Opens the directory, which is copied first if there is none, serves it, and begins to receive.
fn follow(arguments: &Arguments, config: Config, server: &Server, stop: &StopSignal) -> Result<Following> {
    let timeout = config.wal_receiver_timeout.duration();
    let connect = || {
        Client::connect(&arguments.from, timeout, stop)
            .map_err(|error| CommandError::Usage(format!("cannot follow: {error}")))
    };
    let mut keeps_log = None;
    if needs_copy(&arguments.data)? {
        let mut client = connect()?;
        create_slot(arguments, &mut client)?;
        copy(&mut client, &arguments.data, config.fsync)?;
        keeps_log = Some(client);
    } else if arguments.create_slot {
        create_slot(arguments, &mut connect()?)?;
    }
    let stream = StreamOptions {
        slot: arguments.slot.clone(),
        status_interval: config.wal_receiver_status_interval.duration(),
        feedback: config.hot_standby_feedback,
    };
    let engine = Engine::open_standby(&arguments.data, config)
        .map_err(CommandError::database("opening", &arguments.data))?;
    notice(format_args!("{}", recovery_line(&engine)));
    let options = ReceiverOptions {
        conninfo: arguments.from.clone(),
        timeout,
        stream,
    };
    let following = Following::start(engine.clone(), options, keeps_log, |event| {
        notice(format_args!("{event}"));
    })?;
    server.ready(engine);
    for address in addresses(server) {
        notice(format_args!("ready to accept read-only connections on {address}"));
    }
    Ok(following)
}

/// Whether the directory is missing, empty, or holds a copy that was not finished.
fn needs_copy(dir: &Path) -> Result<bool> {
    clearway_storage::received_copy::copy_is_wanted(dir)
        .map_err(|error| CommandError::Usage(format!("cannot use {}: {error}", dir.display())))
}

fn create_slot(arguments: &Arguments, client: &mut Client) -> Result<()> {
    let Some(slot) = arguments.slot.as_ref().filter(|_| arguments.create_slot) else {
        return Ok(());
    };
    let made = identify::create_slot(client, slot)
        .map_err(|error| CommandError::Usage(format!("cannot make the slot \"{slot}\": {error}")))?;
    if made {
        notice(format_args!("made the slot \"{slot}\""));
    }
    Ok(())
}

/// Copies the other server's files, with a progress bar where there is a terminal.
fn copy(client: &mut Client, dir: &Path, fsync: bool) -> Result<()> {
    notice(format_args!(
        "copying the files of {} into {}",
        client.address(),
        dir.display()
    ));
    let bar = ProgressBar::new(0);
    bar.set_style(
        ProgressStyle::with_template("{bar:40} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left")
            .unwrap_or_else(|_| ProgressStyle::default_bar()),
    );
    bar.enable_steady_tick(Duration::from_millis(200));
    let copied = base_backup::fetch(client, dir, fsync, |CopyProgress { done, total }| {
        // The log comes on top of the tables, whose size the server has told.
        bar.set_length(total.max(done));
        bar.set_position(done);
    });
    let bytes = bar.position();
    bar.finish_and_clear();
    copied.map_err(|error| {
        CommandError::Usage(format!(
            "the copy was not finished: {error}; started again, it begins anew"
        ))
    })?;
    notice(format_args!("copied {} MB", bytes >> 20));
    Ok(())
}
