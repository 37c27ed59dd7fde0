//! What the views of a standby show: what receives the log, and what replay has ended.

use clearway_storage::Lsn;

/// How the receiving of log stands. Times are in microseconds since 2000-01-01 UTC.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WalReceiverStatus {
    /// Its number among the sessions, or that of its thread.
    pub process_id: u32,
    /// `streaming`, `starting`, `waiting`, …
    pub status: String,
    /// Where it began to receive.
    pub receive_start: Lsn,
    /// The timeline there.
    pub receive_start_timeline: u32,
    /// Log before this was written.
    pub written: Lsn,
    /// Log before this is durable.
    pub flushed: Lsn,
    /// The timeline there.
    pub received_timeline: u32,
    /// When the server sent its last message, by its own clock.
    pub last_message_sent: Option<i64>,
    /// When that arrived, by the clock here.
    pub last_message_received: Option<i64>,
    /// The end of the server's log, as it said last.
    pub latest_end: Option<Lsn>,
    /// When it said so.
    pub latest_end_time: Option<i64>,
    /// The replication slot, if one is used.
    pub slot_name: Option<String>,
    /// The server's host.
    pub sender_host: Option<String>,
    /// Its port.
    pub sender_port: Option<u16>,
    /// How it connects.
    pub conninfo: String,
}

/// How many statements and transactions replay has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ConflictCounts {
    pub(crate) lock: u64,
    pub(crate) snapshot: u64,
}
