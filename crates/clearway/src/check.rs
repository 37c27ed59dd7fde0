//! `clearway check`: is a data directory sound?

use std::path::PathBuf;

use clap::Args;
use clearway_engine::{Config, Engine};

use crate::error::{CommandError, Result, plural};

/// Check that every index agrees with its table, and every page with its checksum
///
/// Opens the database, which includes recovery if it was not closed cleanly, reads every table and every index entry,
/// and closes it again. The exit code says whether all was well.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Data directory; no server may be running on it
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let path = &arguments.data;
    if !path.is_dir() {
        return Err(CommandError::NoDirectory { path: path.clone() });
    }
    let engine = Engine::open(path, Config::default()).map_err(CommandError::database("opening", path))?;
    println!("{}", crate::serve::recovery_line(&engine));
    let report = engine.check().map_err(CommandError::database("checking", path))?;
    engine
        .shutdown()
        .map_err(CommandError::database("closing", path))?;
    for problem in &report.problems {
        println!("problem: {problem}");
    }
    println!(
        "{}, {}, {} checked",
        plural(report.tables as usize, "table"),
        plural(report.rows as usize, "row"),
        if report.index_entries == 1 {
            "1 index entry".to_owned()
        } else {
            format!("{} index entries", report.index_entries)
        }
    );
    match report.problems.len() {
        0 => {
            println!("all indexes agree with their tables");
            Ok(())
        }
        count => Err(CommandError::Damaged {
            count,
            path: path.clone(),
        }),
    }
}
