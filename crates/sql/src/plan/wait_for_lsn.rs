//! WAIT FOR LSN.

/// WAIT FOR LSN: the session waits until the log has come to a position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitForLsn {
    /// The position.
    pub target: u64,
    /// The progress that has to reach it.
    pub mode: WaitMode,
    /// The time after which the wait ends, as it is written; a number without a unit counts milliseconds. Zero: never.
    pub timeout: Option<String>,
    /// NO_THROW: the answer tells what went wrong, instead of an error.
    pub no_throw: bool,
}

/// The progress that WAIT FOR LSN waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitMode {
    /// Queries on the standby see the log.
    StandbyReplay,
    /// The standby has written the log to its file.
    StandbyWrite,
    /// The log is durable on the standby.
    StandbyFlush,
    /// The log is durable on the primary.
    PrimaryFlush,
}

impl WaitMode {
    /// All modes, with their names.
    pub const NAMES: [(&'static str, WaitMode); 4] = [
        ("standby_replay", WaitMode::StandbyReplay),
        ("standby_write", WaitMode::StandbyWrite),
        ("standby_flush", WaitMode::StandbyFlush),
        ("primary_flush", WaitMode::PrimaryFlush),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            WaitMode::StandbyReplay => "standby_replay",
            WaitMode::StandbyWrite => "standby_write",
            WaitMode::StandbyFlush => "standby_flush",
            WaitMode::PrimaryFlush => "primary_flush",
        }
    }

    /// The participle for messages.
    pub fn done(self) -> &'static str {
        match self {
            WaitMode::StandbyReplay => "replayed",
            WaitMode::StandbyWrite => "written",
            WaitMode::StandbyFlush | WaitMode::PrimaryFlush => "flushed",
        }
    }
}
