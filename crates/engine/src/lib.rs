//! The engine: SQL statements over MVCC tables, in process.
//!
//! # A first session
//!
//! ```
//! use clearway_engine::{Collected, Config, Engine, SessionInfo, Value};
//!
//! # fn main() -> Result<(), clearway_engine::EngineError> {
//! let directory = tempfile::tempdir().unwrap();
//! let engine = Engine::open(directory.path(), Config::default())?;
//! let mut session = engine.session(SessionInfo::default())?;
//!
//! let mut out = Collected::default();
//! session.execute_simple("create table accounts (id int primary key, balance bigint)", &mut out)?;
//! session.execute_simple("insert into accounts values (1, 100), (2, 200)", &mut out)?;
//!
//! // What runs often is prepared once: the plan is kept with it.
//! let transfer = session.prepare("update accounts set balance = balance + $1 where id = $2", &[])?;
//! session.execute(&transfer, &[Value::Int8(-30), Value::Int4(1)], 0, &mut out)?;
//! session.sync()?;
//!
//! session.execute_simple("select balance from accounts where id = 1", &mut out)?;
//! assert_eq!(out.rows, [[Value::Int8(70)]]);
//! drop(session);
//! engine.shutdown()?;
//! # Ok(())
//! # }
//! ```
//!
//! # The way of a statement
//!
//! ```text
//!   text ──sql::parse──▶ statement ──sql::bind──▶ plan ──executor──▶ Output
//!                            ▲                      │
//!                     catalog (a version)     heap, B+trees, locks (storage, txn)
//! ```
//!
//! [`Session::prepare`] stops after `bind`; the plan is made anew when the catalog's version has moved. The simple
//! protocol keeps the plans of recent texts too.
//!
//! | module | job |
//! | --- | --- |
//! | `check` | `clearway check`: every page, every row, every index entry |
//! | [`session`] | a client's statements, from text to tag; the server, the lab and embedding programs call it |
//! | `definition`, `copy` | CREATE, ALTER, DROP, TRUNCATE; COPY |
//! | `executor` | runs plans over rows |
//! | `engine` | an open data directory: its list of sessions, cancelling, vacuum, following a primary |
//! | `transaction` | begin, commit, abort; snapshots; waits for other transactions |
//! | `catalog` | definitions as rows of a heap, visible as any row is, so that DDL is transactional |
//! | `spill` | what does not fit into `work_mem`: sorting and holding rows in temporary files |
//! | [`output`], [`planning_memory`] | where results go; a limit for the memory of long statements |
//! | `settings` | what SET, SHOW and RESET act on |
//! | [`sql`] | the crate `clearway-sql`: values, types, parsing, binding, planning |
//! | [`config`], [`mechanisms`] | what the file sets, and which variant of each mechanism runs |
//! | `synchronous_commit` | what a commit waits for |
//! | `interrupt`, [`activity`], `replication_status` | what ends a statement early, what sessions are doing, what a standby receives |
//! | [`metrics`] | counts and states for monitoring systems |
//! | [`server_log`] | the session of a line in the server's log |
//! | [`memory`] | weighs what statements want, and ends the one that holds too much |
//!
//! A module uses only what is below it in this table, so there are no circles.
//!
//! # Rules of access
//! 1. **A definition never changes.** DDL makes a new one under the catalog lock; a plan remembers the catalog version
//!    it was made with.
//! 2. **Lock, then compare versions.** A statement locks its tables, looks at the catalog version again, and plans anew
//!    until it stands still.
//! 3. **Snapshot after locks, and not older than the definitions.** So an index that became visible while the lock was
//!    waited for leads to every row the snapshot sees. A snapshot that lacks a definition's transaction is taken again
//!    when that transaction has ended; an older one of REPEATABLE READ is 40001.
//! 4. **A commit's order** is the storage crate's (`storage/src/commit/mod.rs`); the engine hands it the publishing of
//!    new definitions as a hook. Files are unlinked afterwards.
//! 5. **Heap first, then indexes.** A row version exists before any entry leads to it; a duplicate found afterwards
//!    fails the statement, and the rollback makes the version invisible.
//! 6. **A row's queue.** A session that waits for a row takes its tuple lock first (`executor/mod.rs`), and gives it
//!    back once the row bears the session's own id.
//! 7. **No latch between two rows.** A scan holds neither latch nor pin while its consumer works.
//! 8. **No `unsafe`** in this crate.
//!
//! # Isolation
//!
//! READ COMMITTED takes a snapshot a statement; an UPDATE, DELETE or SELECT FOR UPDATE that meets a row changed since
//! waits for that transaction, then looks at the newest version again. REPEATABLE READ takes one snapshot a
//! transaction and is snapshot isolation: no dirty, non-repeatable or phantom reads, the first updater wins and the
//! second gets 40001; write skew is possible. SERIALIZABLE is that, with a check of what transactions have read of each
//! other's writes ([`clearway_txn::Serializable`]).
//!
//! # Threads
//!
//! A [`Session`] belongs to one thread at a time and blocks it. Everything else is shared.

#![forbid(unsafe_code)]

pub mod activity;
mod cancel_reason;
mod catalog;
mod check;
mod clock;
pub mod config;
mod convert;
mod copy;
mod definition;
mod engine;

mod executor;
mod identity;
mod in_force;
mod interrupt;
mod lock_wait;
mod logging;
mod login_rule;
pub mod mechanisms;
pub mod memory;
pub mod metrics;
mod nearest;
pub mod output;
pub mod password;
pub mod planning_memory;
mod replication_status;
mod server_counts;
pub mod server_log;
pub mod session;
mod session_counts;
mod settings;
mod spill;
mod statement_statistics;

mod synchronous_commit;
mod transaction;

pub use activity::{BackendType, BackgroundActivity, Encryption, SessionActivity, SessionInfo, SessionState};
pub use check::{CheckProgress, CheckReport};
pub use clearway_sql::error::{EngineError, SqlState};
pub use clearway_sql::plan::CopyFormat;
pub use clearway_sql::value::{DataType, Value};
pub use clearway_sql::{self as sql, error, value};
pub use config::CHANGEABLE;
pub use config::Config;
pub use engine::Engine;
pub use engine::reload::{ReloadHook, Reloaded};
pub use interrupt::StatementWatch;
pub use login_rule::{LoginRule, LoginRuleLine};
pub use mechanisms::{MechanismError, Mechanisms};
pub use output::{Collected, Column, Discard, Notice, Output};
pub use replication_status::WalReceiverStatus;
pub use session::{
    AnswerGate, Completion, Portal, Prepared, ReceivedNotification, Session, TransactionStatus,
};
pub use statement_statistics::{StatementTracking, TrackedStatements};
pub use synchronous_commit::SynchronousCommit;
