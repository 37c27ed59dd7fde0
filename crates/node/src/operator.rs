//! The commands of an operator: look at a cluster, have another node lead, hold takeovers back.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cluster_state::{
    Change, Condition, LEADER, Outcome, PAUSE, SWITCHOVER, Switchover, Transaction, View,
};
use crate::error::{NodeError, Result};
use crate::etcd::Etcd;

/// The time between two looks whether a switchover is done.
const LOOK: Duration = Duration::from_millis(200);

/// The cluster as it is.
pub fn status(etcd: &mut Etcd) -> Result<View> {
    Ok(change(etcd, Vec::new(), Vec::new())?.view)
}

/// Holds takeovers back, or lets them go on.
pub fn pause(etcd: &mut Etcd, is_on: bool) -> Result<()> {
    let wish = match is_on {
        true => Change::put(PAUSE, &true),
        false => Change::Delete(PAUSE.to_owned()),
    };
    change(etcd, Vec::new(), vec![wish]).map(drop)
}

/// Has the node `to` lead, and waits for it until `patience` is over. The name of the leader before.
pub fn switchover(etcd: &mut Etcd, to: &str, patience: Duration) -> Result<String> {
    let refuse = |problem: String| Err(NodeError::Cluster(problem));
    let view = status(etcd)?;
    let Some(leader) = &view.leader else {
        return refuse("the cluster has no leader that could hand over".to_owned());
    };
    let from = leader.value.name.clone();
    if from == to {
        return refuse(format!("{to} leads already"));
    }
    if !view.members.contains_key(to) {
        return refuse(format!("the cluster has no node {to}"));
    }
    if view.paused {
        return refuse("takeovers are held back: \"clearway cluster resume\" first".to_owned());
    }
    if !view.admits(to) {
        return refuse(format!(
            "{to} may lack commits that were acknowledged: it is not among the synchronous standbys"
        ));
    }
    let conditions = vec![Condition {
        key: LEADER,
        revision: leader.revision,
    }];
    let wish = Change::put(SWITCHOVER, &Switchover { to: to.to_owned() });
    // The office is renewed all the time: the condition is only that its holder is still this one.
    let made = change(etcd, conditions, vec![wish.clone()])?;
    if !made.succeeded {
        let is_same = made.view.leader.is_some_and(|entry| entry.value.name == from);
        if !is_same {
            return refuse("another node has begun to lead meanwhile".to_owned());
        }
        change(etcd, Vec::new(), vec![wish])?;
    }
    let deadline = Instant::now() + patience;
    loop {
        thread::sleep(LOOK);
        let view = status(etcd)?;
        let leader = view.leader.as_ref().map(|entry| &entry.value);
        if leader.is_some_and(|leader| leader.name == to) {
            return Ok(from);
        }
        let is_withdrawn = view.switchover.is_none();
        if is_withdrawn && leader.is_some_and(|leader| leader.name == from && !leader.released) {
            return refuse(format!(
                "{from} has not handed over: {to} does not follow it, or is too far behind"
            ));
        }
        if Instant::now() >= deadline {
            return refuse(format!(
                "{to} does not lead after {patience:?}; the wish stays until it does"
            ));
        }
    }
}

fn change(etcd: &mut Etcd, conditions: Vec<Condition>, changes: Vec<Change>) -> Result<Outcome> {
    etcd.transact(&Transaction {
        conditions,
        changes,
        member: None,
    })
}

/// A row of the table of a cluster's nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The node's name.
    pub name: String,
    /// Its role; `leader` for the one that leads.
    pub role: String,
    /// The timeline of its log.
    pub timeline: u32,
    /// The end of its log.
    pub position: u64,
    /// The log that it lacks of the leader's, in bytes.
    pub lag: Option<u64>,
    /// True if commits wait for it.
    pub synchronous: bool,
    /// Seconds since it has written its state, by its clock and this one's.
    pub age_s: u64,
    /// The connection string by which it is followed.
    pub conninfo: String,
}

/// The table of a cluster's nodes at `now`, in seconds since 1970.
pub fn rows(view: &View, now: u64) -> Vec<Row> {
    let leader = view.leader.as_ref().map(|entry| &entry.value);
    let leads = |name: &str| leader.is_some_and(|leader| leader.name == name && !leader.released);
    let end = leader
        .and_then(|leader| view.members.get(&leader.name))
        .map(|entry| entry.value.position);
    let standbys = view.synchronous.as_ref().map(|entry| &entry.value.standbys);
    view.members
        .iter()
        .map(|(name, entry)| {
            let member = &entry.value;
            Row {
                name: name.clone(),
                role: match leads(name) {
                    true => "leader".to_owned(),
                    false => member.role.name().to_owned(),
                },
                timeline: member.timeline,
                position: member.position,
                lag: end
                    .filter(|_| !leads(name))
                    .map(|end| end.saturating_sub(member.position)),
                synchronous: standbys.is_some_and(|standbys| standbys.contains(name)),
                age_s: now.saturating_sub(member.written_at),
                conninfo: member.conninfo.clone(),
            }
        })
        .collect()
}

/// The same, with the office, as JSON.
pub fn as_json(view: &View, now: u64) -> Value {
    let members: Vec<Value> = rows(view, now)
        .into_iter()
        .map(|row| {
            json!({
                "name": row.name, "role": row.role, "timeline": row.timeline, "position": row.position,
                "lag_bytes": row.lag, "synchronous": row.synchronous, "age_s": row.age_s, "conninfo": row.conninfo,
            })
        })
        .collect();
    json!({
        "leader": view.leader.as_ref().map(|entry| &entry.value),
        "synchronous": view.synchronous.as_ref().map(|entry| &entry.value),
        "database": view.database.map(|database| database.to_string()),
        "switchover": view.switchover.as_ref().map(|entry| &entry.value.to),
        "paused": view.paused,
        "members": members,
    })
}
