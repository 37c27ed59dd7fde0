//! Failover: which node of a cluster is the primary, agreed through etcd.
//!
//! ```text
//!   etcd ◀── one transaction an interval ──▶ run ──▶ Database (the program: engine, server, receiver)
//!                                             │ answers and times     ▲ actions
//!                                             ▼                       │
//!                                          decision: a state machine without clock, thread or network
//! ```
//!
//! | module | job |
//! | --- | --- |
//! | [`decision`] | who leads, until when, who may be promoted, which standbys commits wait for; **the rules** |
//! | [`cluster_state`] | what the nodes keep in etcd |
//! | [`etcd`] | etcd's transactions over HTTP |
//! | [`run`] | the loop of a node: carries out what is decided |
//! | [`checks`] | `/primary`, `/replica`, `/health` for load balancers |
//! | [`http`] | answers to single requests |
//! | [`operator`] | `clearway cluster`: status, switchover, pause |
//!
//! The crate knows nothing of the engine: the program gives it a [`run::Database`].

#![forbid(unsafe_code)]

pub mod checks;
pub mod cluster_state;
pub mod decision;
mod error;
pub mod etcd;
pub mod http;
pub mod operator;
pub mod run;

pub use error::{NodeError, Result};
