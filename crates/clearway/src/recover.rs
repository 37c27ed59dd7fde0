//! `clearway recover`: brings a copy of a database to the end of an archive of its log, or to a point before.
//!
//! | `--recover-to` | ends |
//! | --- | --- |
//! | `'2026-11-24 12:00:00+00'` | before the first commit that was made later |
//! | `0/5000028` | after the record that this position lies in, or at whose end it is |
//! | `1234` | after the end of transaction 1234 |
//! | not given | with the log |
//!
//! A target with a slash is a position, digits alone are a transaction, and anything else is a time.

use std::path::PathBuf;

use clap::Args;
use clearway_engine::value::datetime::parse_timestamp;
use clearway_storage::{Lsn, NoPosition, RecoveryPoint, RecoveryTarget, Storage, StorageOptions};
use clearway_txn::Xid;

use crate::error::{Result, plural};
use crate::options::keep_private;
use crate::output;

/// Recover a copy of a database, with an archive of its log, up to its end or to a point
///
/// The copy is a base backup, or the files of a server that has stopped; the archive is a directory that pg_receivewal
/// writes. From the point on the database goes on under a new timeline, so that what the archive holds behind it stays
/// what it is. Transactions that had not committed by the point count as rolled back. To try another point, begin with
/// another copy: this one is changed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    clearway recover --data /var/tmp/copy --archive /var/tmp/archive\n  \
    clearway recover --data /var/tmp/copy --archive /var/tmp/archive --recover-to '2026-11-24 12:00:00+00'")]
pub(crate) struct Arguments {
    /// Data directory of the copy; no server may be running on it
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Directory with the log that the copy lacks
    #[arg(long, value_name = "DIR")]
    archive: Option<PathBuf>,
    /// End of the recovery: a time (UTC if it names no zone), a position of the log, or a transaction's number
    #[arg(long, value_name = "TIME|LSN|XID", value_parser = point)]
    recover_to: Option<RecoveryPoint>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let target = RecoveryTarget {
        archive: arguments.archive.clone(),
        point: arguments.recover_to.clone().unwrap_or(RecoveryPoint::End),
    };
    keep_private(&arguments.data, false)?;
    let (storage, report) = Storage::recover_to(&arguments.data, StorageOptions::default(), &target)?;
    let timeline = storage.timeline();
    storage.shutdown()?;
    output::line(format_args!(
        "recovered to {}: {} with {} replayed in {:.2?}, log {} to {}; timeline {timeline} begins there",
        target.point,
        plural(report.records as usize, "record"),
        plural(report.commits as usize, "commit"),
        report.elapsed,
        report.redo,
        report.end
    ))
}

/// Reads the value of `--recover-to`.
fn point(text: &str) -> std::result::Result<RecoveryPoint, String> {
    let text = text.trim();
    // The kind may be named. Without, a slash makes a position, and a plain number a transaction.
    if let Some(named) = text.strip_prefix("lsn:") {
        return position(named);
    }
    if let Some(named) = text.strip_prefix("xid:") {
        let number = named
            .parse()
            .map_err(|_| "a transaction is named by its number, as in xid:1234")?;
        return Ok(RecoveryPoint::Transaction(Xid(number)));
    }
    if text.contains('/') && !text.contains(':') {
        return position(text);
    }
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        let number = text.parse().map_err(|_| "no transaction has so large a number")?;
        return Ok(RecoveryPoint::Transaction(Xid(number)));
    }
    let microseconds =
        parse_timestamp(text, true, clearway_storage::wall_clock::now_us()).map_err(|error| {
            format!(
                "{error}; give a time such as '2026-11-24 12:00:00+00', a position or a transaction's number"
            )
        })?;
    Ok(RecoveryPoint::Time {
        microseconds,
        shown: text.to_owned(),
    })
}

fn position(text: &str) -> std::result::Result<RecoveryPoint, String> {
    let position: Lsn = text.parse().map_err(|error: NoPosition| error.to_string())?;
    Ok(RecoveryPoint::Position(position))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_is_a_position_a_transaction_or_a_time() {
        assert_eq!(point("1/F8"), Ok(RecoveryPoint::Position(Lsn(0x1_0000_00F8))));
        assert_eq!(point("1234"), Ok(RecoveryPoint::Transaction(Xid(1234))));
        assert_eq!(point("lsn:1/F8"), point("1/F8"));
        assert_eq!(point("xid:1234"), point("1234"));
        assert!(point("lsn:8").is_err() && point("xid:x").is_err());
        for (text, seconds) in [
            ("2000-01-01 00:00:01+00", 1),
            ("2000-01-01 02:00:01+02", 1),
            ("2000-01-01 00:01:00", 60),
        ] {
            let RecoveryPoint::Time { microseconds, shown } = point(text).unwrap() else {
                panic!("{text} is no time");
            };
            assert_eq!((microseconds, shown.as_str()), (seconds * 1_000_000, text));
        }
        for (text, part) in [
            ("", "2026-11-24"),
            ("noon", "2026-11-24"),
            ("1/G", "0/5000028"),
            ("1/2/3", "0/5000028"),
            ("99999999999999999999", "so large"),
        ] {
            let problem = point(text).unwrap_err();
            assert!(problem.contains(part), "{text:?}: {problem}");
        }
    }
}
