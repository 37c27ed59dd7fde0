//! The state of replication, which commits, sessions and followers look at.
//!
//! | module | holds |
//! | --- | --- |
//! | [`retention`] | the log that stays for followers and slots |
//! | [`sync_replication`] | commits that wait until standbys have them |
//! | [`running_transactions`], [`cleanup`] | what is logged for standbys: which transactions run, which versions go |
//! | `standby_state` | of a standby: how far it is, and what its sessions see |

pub mod cleanup;
pub mod retention;
pub mod running_transactions;
pub(crate) mod standby_state;
pub mod sync_replication;
