//! Those who follow this server: the log that stays for them, and the commits that wait for them.

pub mod retention;
pub mod sync_replication;
