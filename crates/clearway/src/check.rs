//! `clearway check`: is a data directory sound?

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use clearway_engine::{CheckProgress, Config, Engine};

use crate::error::{CommandError, Result, plural};
use crate::output;

/// Check every page, the structure of tables and indexes, and that each index agrees with its table
///
/// Reads every table and every index entry, as they are after recovery if the database was not closed cleanly. Nothing
/// in the directory is changed: recovery happens in memory, and takes as much of it as pages were changed since the
/// last checkpoint. Exit code 0: all is well; 1: something is wrong, and is listed; 2: the check could not be made.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Data directory; no server may be running on it
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
}

/// Interval between two progress messages of the check.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(2);

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    check(arguments).map_err(|error| match error {
        damaged @ CommandError::Damaged { .. } => damaged,
        other => CommandError::NotChecked(Box::new(other)),
    })
}

/// Says on standard error how far the check is, now and then.
fn progress() -> impl FnMut(&CheckProgress<'_>) {
    let mut last = Instant::now();
    move |progress| {
        if last.elapsed() < PROGRESS_INTERVAL {
            return;
        }
        last = Instant::now();
        let percent = progress.pages_done * 100 / progress.pages_total.max(1);
        output::notice(format_args!(
            "{percent} %: {} of {} pages, {}",
            progress.pages_done, progress.pages_total, progress.relation
        ));
    }
}

fn check(arguments: &Arguments) -> Result<()> {
    let path = &arguments.data;
    let config = Config {
        // No other session works on this copy.
        autovacuum: false,
        ..Config::default()
    };
    let engine = Engine::open_read_only(path, config).map_err(CommandError::database("opening", path))?;
    output::line(format_args!("{}", crate::serve::recovery_line(&engine)))?;
    let report = engine
        .check_with(&mut progress())
        .map_err(CommandError::database("checking", path))?;
    for problem in &report.problems {
        output::line(format_args!("problem: {problem}"))?;
    }
    for note in &report.notes {
        output::line(format_args!("note: {note}"))?;
    }
    output::line(format_args!(
        "{}, {}, {}, {} checked",
        plural(report.tables as usize, "table"),
        plural(report.pages as usize, "page"),
        plural(report.rows as usize, "row"),
        if report.index_entries == 1 {
            "1 index entry".to_owned()
        } else {
            format!("{} index entries", report.index_entries)
        }
    ))?;
    match report.problems.len() {
        0 => {
            output::line(format_args!(
                "no problems: pages and structures are sound, and all indexes agree with their tables"
            ))?;
            Ok(())
        }
        count => Err(CommandError::Damaged {
            count,
            path: path.clone(),
        }),
    }
}
