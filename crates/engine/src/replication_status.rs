//! The data behind the views of a standby: the receiver of the log, and the statements that replay has ended.

use clearway_storage::Lsn;

/// The status of the receiver. Times are in microseconds since 2000-01-01 UTC.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WalReceiverStatus {
    /// Its number among the sessions, or that of its thread.
    pub process_id: u32,
    /// `streaming`, `starting`, `waiting`, …
    pub status: String,
    /// The position at which it began to receive.
    pub receive_start: Lsn,
    /// The timeline there.
    pub receive_start_timeline: u32,
    /// Log before this was written.
    pub written: Lsn,
    /// Log before this is durable.
    pub flushed: Lsn,
    /// The timeline there.
    pub received_timeline: u32,
    /// The time of the server's last message, by its own clock.
    pub last_message_sent: Option<i64>,
    /// The time of that message's arrival, by the clock here.
    pub last_message_received: Option<i64>,
    /// The end of the server's log, as it said last.
    pub latest_end: Option<Lsn>,
    /// The time of that report.
    pub latest_end_time: Option<i64>,
    /// The replication slot, if one is used.
    pub slot_name: Option<String>,
    /// The server's host.
    pub sender_host: Option<String>,
    /// Its port.
    pub sender_port: Option<u16>,
    /// Its connection string.
    pub conninfo: String,
}

/// Numbers of statements and transactions that replay has ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ConflictCounts {
    pub(crate) lock: u64,
    pub(crate) snapshot: u64,
}

impl ConflictCounts {
    /// Those since an earlier reading.
    pub(crate) fn since(self, before: ConflictCounts) -> ConflictCounts {
        ConflictCounts {
            lock: self.lock.saturating_sub(before.lock),
            snapshot: self.snapshot.saturating_sub(before.snapshot),
        }
    }
}
