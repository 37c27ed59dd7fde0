//! A log device that fails ends the process, loudly and at once: what the disk has kept of the log cannot be
//! known, so no commit may be acknowledged after it, and a sync is never tried again.
//!
//! The process that is to end is this test binary, started again with a variable that names the failure.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use clearway_machine::{Native, Switch};
use clearway_storage::Lsn;
use clearway_storage::wal::record::RecordKind;
use clearway_storage::wal::{LogDevice, LogFlushVariant, LogOptions, Wal};
use clearway_txn::Xid;

const FAILURE: &str = "CLEARWAY_TEST_LOG_FAILURE";
const FLUSH: &str = "CLEARWAY_TEST_LOG_FLUSH";
const SIGABRT: i32 = 6;

/// Fails at its second write or sync.
#[derive(Debug)]
struct Failing {
    write: bool,
}

impl Failing {
    fn outcome(&self, fails: bool, position: u64) -> io::Result<()> {
        if fails && position > 64 {
            Err(io::Error::other("the disk is gone"))
        } else {
            Ok(())
        }
    }
}

impl LogDevice for Failing {
    fn make_room(&self, _position: u64) -> io::Result<()> {
        Ok(())
    }
    fn write(&self, position: u64, _bytes: &[u8]) -> io::Result<()> {
        self.outcome(self.write, position)
    }
    fn sync(&self, from: u64, _to: u64) -> io::Result<()> {
        self.outcome(!self.write, from)
    }
    fn read(&self, _position: u64, _bytes: &mut [u8]) -> io::Result<usize> {
        Ok(0)
    }
    fn forget_before(&self, _position: u64) -> io::Result<()> {
        Ok(())
    }
}

#[test]
#[ignore = "the process that is to end; started by the other tests"]
fn commit_twice() {
    let device = Failing {
        write: std::env::var(FAILURE).unwrap() == "write",
    };
    let start = Lsn(64);
    let options = LogOptions {
        flush: LogFlushVariant::named(&std::env::var(FLUSH).unwrap()).unwrap(),
        ..LogOptions::default()
    };
    let log = Wal::<Native, _>::new(device, options, start, start);
    for number in 1..=2 {
        log.flush(log.insert_any(RecordKind::COMMIT, Xid(10), &[]));
        println!("acknowledged {number}");
    }
}

fn fails(failure: &str) {
    for flush in LogFlushVariant::ALL {
        fails_under(failure, flush.name());
    }
}

fn fails_under(failure: &str, flush: &str) {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "commit_twice", "--ignored", "--nocapture"])
        .env(FAILURE, failure)
        .env(FLUSH, flush)
        .output()
        .unwrap();
    let (out, err) = (
        String::from_utf8_lossy(&child.stdout),
        String::from_utf8_lossy(&child.stderr),
    );
    assert_eq!(child.status.signal(), Some(SIGABRT), "{out}{err}");
    assert!(
        out.contains("acknowledged 1") && !out.contains("acknowledged 2"),
        "{out}"
    );
    assert!(
        err.contains(&format!("could not {failure} the log: the disk is gone")),
        "{err}"
    );
}

#[test]
fn a_failed_write_ends_the_process() {
    fails("write");
}

#[test]
fn a_failed_sync_ends_the_process() {
    fails("sync");
}
