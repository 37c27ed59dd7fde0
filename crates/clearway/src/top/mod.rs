//! `clearway top`: a running server as its operator sees it, again and again.
//!
//! | part | module |
//! | --- | --- |
//! | one look: the server's views, by SQL | `sample` |
//! | the figures of an interval, also as JSON | `figures` |
//! | how many wait for each session | `waiters` |
//! | intervals, one after the other | `intervals` |
//! | the thread that looks | `watch` |
//! | what the operator looks at, and the keys | `view` |
//! | figures as text of a terminal | `screen` |
//! | numbers with units | `units` |
//! | the terminal | `terminal` |
//!
//! It needs nothing but a connection: what it shows, any program can ask the same views for. Its own session and its own
//! transactions are in none of the figures.

mod figures;
mod intervals;
mod sample;
mod screen;
mod terminal;
mod units;
mod view;
mod waiters;
mod watch;

use std::io::{self, IsTerminal, Write};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use clearway_server::StopSignal;
use clearway_server::replication::receiver::ReceiverError;
use clearway_server::replication::receiver::client::Client;
use clearway_server::replication::receiver::conninfo::ConnInfo;

use self::intervals::Intervals;
use self::watch::Watch;
use crate::error::{CommandError, Result};
use crate::options::duration;

/// The longest wait for an answer of the server.
const PATIENCE: Duration = Duration::from_secs(10);
/// The least interval.
const INTERVAL_MIN: Duration = Duration::from_millis(100);
/// The longest interval: a day. Sums of times and intervals have room.
const INTERVAL_MAX: Duration = Duration::from_secs(86_400);

/// Watch a running server: what its sessions do and wait for, who keeps them, latches, standbys
#[derive(Debug, Args)]
#[command(
    after_help = "Keys: 1, 2, 3 sessions, latches, standbys; arrows select a session, Enter opens it; c ends its \
    statement and x the session, after a question; q quits.\n\n\
    Examples:\n  \
    clearway top                                              the server on 127.0.0.1:5433\n  \
    clearway top 'host=/tmp port=5433 user=alice'             by its Unix-domain socket\n  \
    clearway top postgresql://alice@db.example.org/postgres?sslmode=require\n  \
    clearway top --once                                       one interval as text\n  \
    clearway top --json --interval 10s | jq .commits          an object a line, without end\n\n\
    Statements of others are shown to superusers and members of pg_read_all_stats."
)]
pub(crate) struct Arguments {
    /// Connection, in libpq's words or as a URI; what it leaves out is taken from PGHOST, PGPORT, PGUSER, PGDATABASE, PGPASSWORD,
    /// PGPASSFILE, PGSSLMODE and PGSSLROOTCERT, and is 127.0.0.1, 5433, postgres and postgres without those
    #[arg(value_name = "CONNECTION", default_value = "")]
    connection: String,
    /// Time between two looks
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration)]
    interval: Duration,
    /// Print the figures of one interval, and end
    #[arg(long)]
    once: bool,
    /// Print the figures as JSON, an object a line
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if !(INTERVAL_MIN..=INTERVAL_MAX).contains(&arguments.interval) {
        return Err(CommandError::Usage(format!(
            "--interval {:?} is out of range: from {INTERVAL_MIN:?} to {INTERVAL_MAX:?}",
            arguments.interval
        )));
    }
    let on_terminal = !arguments.once && !arguments.json;
    if on_terminal {
        terminal::check()?;
    }
    let info = ConnInfo::of_program(&arguments.connection, "clearway top", |name| {
        std::env::var(name).ok()
    })?;
    let stop = StopSignal::new().map_err(CommandError::io("creating the stop signal"))?;
    let client = Client::connect_session(&info, PATIENCE, &stop)?;
    let server = client.address().to_owned();
    if on_terminal {
        let watch = Watch::start(client, info, arguments.interval, stop)?;
        return terminal::show(&watch, &server);
    }
    let mut intervals = Intervals::begin(client, arguments.interval)?;
    loop {
        let figures = intervals.next(|_, until| {
            thread::sleep(until.saturating_duration_since(Instant::now()));
            Ok::<_, ReceiverError>(0)
        })?;
        let text = match arguments.json {
            true => format!("{}\n", figures.json()),
            false => screen::text(&figures, &server, columns()),
        };
        let mut output = io::stdout().lock();
        match output.write_all(text.as_bytes()).and_then(|()| output.flush()) {
            // The reader has enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            written => written.map_err(CommandError::io("writing to standard output"))?,
        }
        if arguments.once {
            return Ok(());
        }
    }
}

/// The terminal's width; a wide one where there is none.
fn columns() -> u16 {
    match ratatui::crossterm::terminal::size() {
        Ok((columns, _)) if io::stdout().is_terminal() => columns.max(80),
        _ => 132,
    }
}
