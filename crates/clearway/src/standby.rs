//! `clearway standby`: a copy of another server, kept up to date, that answers reads.
//!
//! 1. Take the sockets; clients are told to wait (57P03).
//! 2. Find out what the directory is to be (`role`). One that was promoted stays a primary.
//! 3. If the directory is missing or empty, or a copy in it was not finished: fetch a base backup.
//! 4. Open the directory and replay its log; from here on reads are served.
//! 5. Receive log until the stop signal or a promotion (`clearway_server::replication::following`).
//!
//! The server has a stop signal of its own. It is given after the receiver has ended, so that the engine is not closed
//! under a receiver that writes.

use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use clap::Args;
use clearway_engine::{Config, Engine};
use clearway_server::replication::following::{Following, FormerPrimary, Promotions};
use clearway_server::replication::receiver::client::Client;
use clearway_server::replication::receiver::conninfo::ConnInfo;
use clearway_server::replication::receiver::run::ReceiverOptions;
use clearway_server::replication::receiver::stream::StreamOptions;
use clearway_server::replication::receiver::{base_backup, identify};
use clearway_server::{Server, StopSignal};
use clearway_storage::disk::{Disk, NativeDiskWithModes};
use indicatif::{ProgressBar, ProgressStyle};

use crate::error::{CommandError, Result};
use crate::metrics::MetricsPage;
use crate::options::keep_private;
use crate::output::notice;
use crate::role::{self, Role};
use crate::serve::{OnPanic, addresses, bind};
use crate::served::{LISTEN_STANDBY, ServedOptions};
use crate::server_log;
use crate::signals::{OnHangUp, handle_signals, survive_file_size_limit};
use crate::supervisor;
use crate::written_settings::WrittenSettings;

/// Interval between two looks at whether the standby is to stop.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Follow another Clearway server: copy it, receive its log, and answer reads
///
/// If the data directory is missing or empty, the other server (the primary) is copied first. Then its log is received
/// and replayed, for as long as this runs; when the connection is lost it is tried again. Sessions can read, and a write
/// is refused (25006). A slot makes the primary keep its log while the standby is away. `clearway promote` ends the
/// following, and makes the standby a server of its own that takes writes. A primary on another machine is spoken to
/// over TLS: sslmode, sslrootcert and channel_binding in --from are libpq's.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    clearway standby --from 'host=127.0.0.1 port=5433' --data /var/tmp/standby --listen 127.0.0.1:5434\n  \
    clearway standby --from 'host=/tmp port=5433' --data /var/tmp/standby --listen 127.0.0.1:5434 \\\n    \
    --slot standby1 --create-slot\n  \
    clearway standby --from 'host=db1.example.org port=5433 user=copy passfile=pass sslmode=verify-full \
    sslrootcert=db1.crt' --data /var/tmp/standby\n\n\
    Then, in another terminal:\n  \
    psql -h 127.0.0.1 -p 5434 postgres -c 'select pg_is_in_recovery(), pg_last_wal_replay_lsn()'\n  \
    psql -h 127.0.0.1 -p 5433 postgres -c 'select * from pg_stat_replication'\n  \
    clearway promote --data /var/tmp/standby      when the primary is gone for good")]
pub(crate) struct Arguments {
    /// The primary: 'host=… port=… user=… application_name=…' or postgresql://…; if it is not given, primary_conninfo of
    /// the configuration file counts
    #[arg(long, value_name = "CONNINFO")]
    from: Option<String>,
    /// Replication slot to use at the primary; otherwise primary_slot_name of the configuration file
    #[arg(long, value_name = "NAME")]
    slot: Option<String>,
    /// Make the slot, if it is not there
    #[arg(long)]
    create_slot: bool,
    /// Make a standby of a directory that was promoted, although the server to follow is the one that it followed before
    #[arg(long)]
    rejoin: bool,
    #[command(flatten)]
    served: ServedOptions,
}

/// The server to follow, from the command line or the configuration file.
#[derive(Debug)]
struct Primary {
    conninfo: ConnInfo,
    slot: Option<String>,
    create_slot: bool,
}

impl Primary {
    /// The command line counts first, then the configuration file, then what `pg_basebackup -R` has written.
    fn of(arguments: &Arguments, data: &Path, config: &Config) -> Result<Primary> {
        let written = WrittenSettings::read(data)?;
        let first = |given: Option<&String>, configured: &String, written: Option<String>| {
            let configured = (!configured.is_empty()).then_some(configured);
            let text = given.or(configured).cloned().or(written)?;
            (!text.is_empty()).then_some(text)
        };
        let conninfo = first(
            arguments.from.as_ref(),
            &config.primary_conninfo,
            written.primary_conninfo,
        );
        let slot = first(
            arguments.slot.as_ref(),
            &config.primary_slot_name,
            written.primary_slot_name,
        );
        let Some(text) = conninfo else {
            return Err(CommandError::Usage(
                "which server is to be followed? Give --from 'host=127.0.0.1 port=5433', or set primary_conninfo in the \
                 configuration file"
                    .to_owned(),
            ));
        };
        if arguments.create_slot && slot.is_none() {
            return Err(CommandError::Usage(
                "--create-slot makes the slot that --slot names; give both".to_owned(),
            ));
        }
        Ok(Primary {
            conninfo: text.parse()?,
            slot,
            create_slot: arguments.create_slot,
        })
    }

    fn connect(&self, config: &Config, stop: &StopSignal) -> Result<Client> {
        Ok(Client::connect(
            &self.conninfo,
            config.wal_receiver_timeout.duration(),
            stop,
        )?)
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let served = arguments.served.clone();
    let data = served.data()?;
    let load = {
        let data = data.clone();
        move || served.load(&data, &data, LISTEN_STANDBY)
    };
    let config = load()?;
    server_log::configure(&config);
    keep_private(&data, config.allow_group_access)?;
    let primary = Primary::of(arguments, &data, &config)?;
    let role = role::of(&data, &primary.conninfo, arguments.rejoin)?;
    let on_hang_up = OnHangUp::default();
    let stop = handle_signals(on_hang_up.clone())?;
    survive_file_size_limit()?;
    let server = bind(arguments.served.port, &data, &config, None)?;
    let metrics = MetricsPage::listen(&config.metrics_listen)?;
    let server_stop = StopSignal::new().map_err(CommandError::io("creating the stop signal"))?;
    thread::scope(|scope| {
        let _stop_on_panic = OnPanic(|| server_stop.stop());
        let running = scope.spawn(|| server.run(&server_stop));
        let ends = || stop.is_stopped() || running.is_finished();
        let opened = |engine: &Arc<Engine>| {
            on_hang_up.reload(load.clone(), engine);
            metrics.show(engine);
        };
        let serving = Serving {
            server: &server,
            stop: &stop,
            ends: &ends,
            opened: &opened,
        };
        let followed = match role {
            Role::Primary { timeline } => lead(&data, config, timeline, &serving),
            role => follow(&data, config, primary, role, &serving),
        };
        server_stop.stop();
        match running.join() {
            Ok(outcome) => followed.and(outcome.map_err(CommandError::from))?,
            Err(panic) => std::panic::resume_unwind(panic),
        }
        notice(format_args!("shut down"));
        Ok(())
    })
}

/// The server around the engine, and what ends it.
struct Serving<'a> {
    server: &'a Server,
    stop: &'a StopSignal,
    /// True once the server is to end.
    ends: &'a dyn Fn() -> bool,
    /// Called with the engine once it is open.
    opened: &'a dyn Fn(&Arc<Engine>),
}

impl Serving<'_> {
    /// Opens the server to clients, which may do what `ready` says, until it is to end.
    fn run(&self, engine: Arc<Engine>, ready: &str) {
        self.server.ready(engine);
        let addresses = addresses(self.server);
        for address in &addresses {
            notice(format_args!("{ready} on {address}"));
        }
        supervisor::ready(&addresses);
        while !(self.ends)() {
            thread::sleep(LOOK_EVERY);
        }
    }
}

/// The directory was promoted: a primary, as after `clearway serve`.
fn lead(data: &Path, config: Config, timeline: u32, serving: &Serving<'_>) -> Result<()> {
    notice(format_args!(
        "{} was promoted, and is a primary on timeline {timeline}: it is started as one, and --from and --slot are ignored \
         (--rejoin would make a standby of it again)",
        data.display()
    ));
    let engine = Engine::open(data, config).map_err(CommandError::database("opening", data))?;
    notice(format_args!("{}", crate::serve::recovery_line(&engine)));
    (serving.opened)(&engine);
    serving.run(engine, "ready to accept connections");
    Ok(())
}

/// Steps 3 to 5.
fn follow(data: &Path, config: Config, primary: Primary, role: Role, serving: &Serving<'_>) -> Result<()> {
    let stop = serving.stop;
    let keeps_log = match role {
        Role::New => Some(copy(data, &config, &primary, stop)?),
        Role::FormerPrimary => Some(join(data, &config, &primary, stop)?),
        Role::Standby | Role::Primary { .. } => None,
    };
    let options = ReceiverOptions {
        conninfo: primary.conninfo,
        timeout: config.wal_receiver_timeout.duration(),
        stream: StreamOptions {
            slot: primary.slot,
            status_interval: config.wal_receiver_status_interval.duration(),
            feedback: config.hot_standby_feedback,
        },
        create_slot: primary.create_slot,
    };
    let engine = Engine::open_standby(data, config).map_err(CommandError::database("opening", data))?;
    notice(format_args!("{}", crate::serve::recovery_line(&engine)));
    (serving.opened)(&engine);
    let mut following = Following::start(
        Arc::clone(&engine),
        options,
        keeps_log,
        Promotions::Asked,
        |event| {
            notice(format_args!("{event}"));
        },
    )?;
    serving.run(engine, "ready to accept connections that read");
    following.stop();
    Ok(())
}

/// A directory that is not a standby's becomes one, if that server's log goes on from its own. Until the server has said so
/// nothing in the directory is changed.
fn join(data: &Path, config: &Config, primary: &Primary, stop: &StopSignal) -> Result<Client> {
    let log = FormerPrimary::open(data)?;
    let mut client = primary.connect(config, stop).map_err(|error| {
        CommandError::Usage(format!(
            "{} is not a standby's directory: it was written to by a server of its own; before it becomes a standby, the \
             server to follow has to say that its log goes on from there, and {error}",
            data.display()
        ))
    })?;
    log.can_follow(&mut client)?;
    notice(format_args!(
        "{} was a primary's, and becomes a standby: the log of {} goes on from its own",
        data.display(),
        client.address()
    ));
    Ok(client)
}

/// Makes the copy. The connection that has fetched it makes the primary keep the log behind it.
fn copy(data: &Path, config: &Config, primary: &Primary, stop: &StopSignal) -> Result<Client> {
    let mut client = primary.connect(config, stop)?;
    // Before the copy, so that it keeps the log that the copy needs.
    if let Some(slot) = primary.slot.as_ref().filter(|_| primary.create_slot)
        && identify::create_slot(&mut client, slot)?
    {
        notice(format_args!(
            "made the replication slot \"{slot}\" at {}",
            client.address()
        ));
    }
    notice(format_args!(
        "copying {} into {}",
        client.address(),
        data.display()
    ));
    if config.allow_group_access {
        // A copy takes its modes from its directory.
        make_group_readable(data).map_err(CommandError::io("making the data directory"))?;
    }
    let bar = progress_bar();
    let mut done = 0;
    base_backup::fetch(&mut client, data, config.fsync, |progress| {
        done = progress.done;
        // The log comes on top of what was expected.
        bar.set_length(progress.total.max(done));
        bar.set_position(done);
    })?;
    bar.finish_and_clear();
    notice(format_args!("copied {}", indicatif::HumanBytes(done)));
    Ok(client)
}

/// Makes a directory for a copy, or takes the empty one that is there, with group access.
fn make_group_readable(data: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(data)?;
    NativeDiskWithModes::of(data, true).restrict(data)
}

/// A bar for bytes, which is not shown where there is no terminal.
fn progress_bar() -> ProgressBar {
    let bar = ProgressBar::new(0);
    let template = "{bar:40} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}
