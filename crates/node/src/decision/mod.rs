//! The decisions of a node: who leads, until when, and what may be promoted.
//!
//! A state machine without clock, thread or network. What comes in: times, the answers of etcd, the state of the node's own
//! database. What goes out: the next transaction for etcd, and [`Action`]s. `tests/sim_failover.rs` runs thousands of
//! clusters of it with clocks that differ, processes that stop, and a network that loses and delays.
//!
//! # An example
//! The time to live is 10 s; times in seconds.
//!
//! | time | alice, the primary | berlin, a standby |
//! | --- | --- | --- |
//! | 0.0 | sends a renewal | |
//! | 0.1 | etcd has it, as revision 70 | |
//! | 0.2 | has the answer: she may answer clients until 9.8 (0.0 and 98 % of 10) | |
//! | 0.7 | is stopped (SIGSTOP) | reads revision 70 for the first time |
//! | 10.9 | | 102 % of 10 s after 0.7 it is still 70: berlin takes the office in a transaction that asks for revision 70 |
//! | 11.0 | | is promoted |
//! | 60.0 | goes on; a session has a commit to answer, and looks at the clock: 60.0 > 9.8, so the client gets an error | |
//!
//! # Rules
//! - F1: the office changes in transactions that ask for the revision of its key. So of two that try, one has it.
//! - F2: a primary answers until the time *before* it sent its last successful renewal, and 98 % of the time to live. The
//!   session that answers looks at the clock itself, as the last thing before it writes (`clearway_server::AnswerDeadline`).
//! - F3: a node takes an office that another one holds only when it has seen the same revision for 102 % of the time to live,
//!   counted from the time *after* it got the answer that showed it first. An office whose key is gone may have a holder all
//!   the same: a node that has a database waits for 102 % of its own time to live.
//! - F4: where commits wait for standbys, only a node that [`Synchronous`] names takes over, in a transaction that asks for
//!   the revision of that key, too.
//! - F5: a standby is named there after commits wait for it and it has all log from before; commits stop to wait for it after
//!   it is named there no more (`synchronous`).
//! - F6: a node that has lost the office, or has given it up, never answers as a primary again: its process ends.
//! - F7: the deadline is set before the promotion begins.
//! - F8: a primary answers only while the key `database` names its database. So of two nodes that each have one, the later
//!   one acknowledges nothing.
//!
//! # Why at most one primary answers
//! Let *r* be the last renewal of the old primary, sent at *s* and applied by etcd at *a* ≥ *s*. It answers until *s* + 98 % of
//! the time to live, by its clock. The new one has seen *r* at some time after *a*, and takes over 102 % later by its own, and
//! only if nothing was renewed meanwhile (F1, F3). With clocks whose rates are wrong by 1 % at most, 98 % / 0.99 < 102 % / 1.01:
//! the first has ended before the second begins. What is left over is 2 % of the time to live.
//!
//! # Why not etcd's leases
//! etcd counts a lease on the clock of its own leader, and an etcd leader that was stopped and goes on can revoke a lease that
//! was renewed meanwhile at another one. The key would vanish while its holder may answer. Here etcd has only to make its
//! transactions one after the other; which it does whatever its clocks say. It costs a write of the key at each interval.
//!
//! # Assumptions
//! - etcd's transactions are linearizable.
//! - The clock of a node goes on while its process is stopped (`CLOCK_BOOTTIME`), is never set, and its rate is wrong by 1 % at
//!   most. A virtual machine that is paused needs a clock that is moved forward when it goes on, as KVM and Xen do it.
//! - A thread can be stopped between its look at the clock and its write: such an answer leaves late. It is of a commit that
//!   was acknowledgeable in time. With synchronous replication the new primary has it; without, it may be lost as any commit
//!   that was acknowledged a moment before the failure.
//!
//! Origin: leases as in Gray and Cheriton (1989); expiry by watching a revision, as in Kubernetes' leader election.

mod election;
mod synchronous;

use std::collections::BTreeMap;

use crate::cluster_state::{
    Change, Condition, DATABASE, Entry, LEADER, Leader, Member, Outcome, Role, SWITCHOVER, SYNCHRONOUS,
    Synchronous, Transaction, View,
};
use synchronous::Waits;

/// A time or a span, in nanoseconds of the node's clock.
pub type Ns = u64;

/// The part of the time to live for which a primary answers, in per cent (F2).
const ANSWER_PERCENT: u64 = 98;
/// The part of it for which another node waits (F3).
const WAIT_PERCENT: u64 = 102;

/// The options of a node's decisions.
#[derive(Debug, Clone)]
pub struct Options {
    /// The node's name, which no other node of the cluster has.
    pub name: String,
    /// A random number of this process.
    pub instance: u64,
    /// The connection string by which others follow it.
    pub conninfo: String,
    /// The address of its checks.
    pub checks: Option<String>,
    /// The time for which a renewal holds.
    pub ttl_ns: Ns,
    /// The time between two transactions.
    pub interval_ns: Ns,
    /// The number of standbys that commits wait for; 0: none, and any node may be promoted.
    pub synchronous: usize,
}

/// The state of the node's own database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Own {
    /// Its role.
    pub role: Role,
    /// The database's identifier.
    pub database: Option<u64>,
    /// The standbys that commits wait for. Read before `position`.
    pub waits_for: Vec<String>,
    /// The timeline of its log.
    pub timeline: u32,
    /// A primary: the end of its log. Otherwise the end of the log that it would have after a promotion.
    pub position: u64,
    /// The node that it follows.
    pub follows: Option<String>,
    /// True while it receives log.
    pub streams: bool,
    /// The standbys that it sends log to.
    pub followers: Vec<String>,
    /// A hand-over has ended: nothing is answered any more, and the log is closed.
    pub stopped: bool,
}

/// Something for the program to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Answers may leave until this time; 0: none.
    AnswerUntil(Ns),
    /// Become the primary: initialise, open, or promote.
    Lead {
        /// The number of the takeover.
        term: u64,
    },
    /// Follow this node: copy it first, or rewind, as needed.
    Follow {
        /// Its name.
        name: String,
        /// Its connection string.
        conninfo: String,
    },
    /// Commits wait for these standbys from now on, for all of them.
    WaitFor(Vec<String>),
    /// Stop the server in order; [`Own::stopped`] says when that is done.
    HandOver,
    /// Answer nothing any more, end the sessions with an error, and the process.
    Fence(&'static str),
    /// End the process: nothing is left to do.
    End,
    /// End the process with this error.
    Refuse(String),
}

/// An office that this node holds.
#[derive(Debug)]
struct Office {
    term: u64,
    /// The revision of the key, as far as it is known.
    revision: i64,
    renewals: u64,
    /// F2.
    until: Ns,
    waits: Waits,
    /// The last [`Action::WaitFor`].
    waits_told: Option<Vec<String>>,
}

#[derive(Debug)]
enum Standing {
    Follower,
    Leader(Office),
    /// It stops, for the node that is named, or for any.
    HandingOver(Office, Option<String>),
    /// F6.
    Over,
}

/// The purpose of the transaction that is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    Nothing,
    Takeover { term: u64 },
    Renewal,
    Release,
}

/// The time at which a revision was seen first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    revision: i64,
    since: Ns,
}

/// The state machine. See the module.
#[derive(Debug)]
pub struct Decision {
    options: Options,
    standing: Standing,
    asked: Asked,
    beats: u64,
    /// The last view, once there is one.
    view: Option<View>,
    leader_seen: Option<Seen>,
    members_seen: BTreeMap<String, Seen>,
    /// The term and the connection string that [`Action::Follow`] named last.
    followed: Option<(u64, String)>,
}

impl Decision {
    /// A node that has asked nothing yet.
    pub fn new(options: Options) -> Decision {
        Decision {
            options,
            standing: Standing::Follower,
            asked: Asked::Nothing,
            beats: 0,
            view: None,
            leader_seen: None,
            members_seen: BTreeMap::new(),
            followed: None,
        }
    }

    /// True while it holds the office.
    pub fn leads(&self) -> bool {
        matches!(self.standing, Standing::Leader(_) | Standing::HandingOver(..))
    }

    /// The last view of the cluster.
    pub fn view(&self) -> Option<&View> {
        self.view.as_ref()
    }

    /// The next transaction, at the time `now`. [`answered`](Self::answered) or [`unanswered`](Self::unanswered) follows.
    pub fn request(&mut self, now: Ns, own: &Own, wall_clock_s: u64) -> Transaction {
        let (asked, conditions, changes) = match &mut self.standing {
            Standing::Follower => match self.takeover(now, own) {
                Some((term, conditions, changes)) => (Asked::Takeover { term }, conditions, changes),
                None => (Asked::Nothing, Vec::new(), Vec::new()),
            },
            Standing::HandingOver(office, successor) if own.stopped => {
                let mut leader = held(&self.options, office);
                leader.released = true;
                leader.successor.clone_from(successor);
                let changes = vec![
                    Change::put(LEADER, &leader),
                    Change::Delete(SWITCHOVER.to_owned()),
                ];
                (Asked::Release, vec![holds(office)], changes)
            }
            Standing::Leader(office) => {
                let (conditions, changes) = renewal(&self.options, office, self.view.as_ref(), own, |name| {
                    is_fresh(&self.members_seen, name, now, self.options.ttl_ns)
                });
                (Asked::Renewal, conditions, changes)
            }
            Standing::HandingOver(office, _) => {
                office.renewals += 1;
                let leader = held(&self.options, office);
                (
                    Asked::Renewal,
                    vec![holds(office)],
                    vec![Change::put(LEADER, &leader)],
                )
            }
            Standing::Over => (Asked::Nothing, Vec::new(), Vec::new()),
        };
        self.asked = asked;
        self.beats += 1;
        Transaction {
            conditions,
            changes,
            member: Some((self.options.name.clone(), self.described(own, wall_clock_s))),
        }
    }

    /// The node, as it tells the others.
    fn described(&self, own: &Own, wall_clock_s: u64) -> Member {
        Member {
            conninfo: self.options.conninfo.clone(),
            checks: self.options.checks.clone(),
            role: own.role,
            timeline: own.timeline,
            position: own.position,
            follows: own.follows.clone(),
            streams: own.streams,
            beats: self.beats,
            written_at: wall_clock_s,
        }
    }

    /// The transaction had no answer: it may have been made or not, and may yet be.
    pub fn unanswered(&mut self) {
        self.asked = Asked::Nothing;
    }

    /// The transaction that was sent at `sent` had this outcome, known at `received`.
    pub fn answered(&mut self, sent: Ns, received: Ns, outcome: Outcome, own: &Own) -> Vec<Action> {
        let mut actions = Vec::new();
        if matches!(self.standing, Standing::Over) {
            return actions;
        }
        let succeeded = outcome.succeeded;
        self.see(received, outcome.view);
        match std::mem::replace(&mut self.asked, Asked::Nothing) {
            Asked::Takeover { term } if succeeded => {
                self.standing = Standing::Leader(Office {
                    term,
                    revision: self.leader_revision(),
                    renewals: 0,
                    until: self.answers_until(sent),
                    waits: Waits::default(),
                    waits_told: None,
                });
                self.followed = None;
                // F7.
                actions.push(Action::AnswerUntil(self.deadline(own)));
                actions.push(Action::Lead { term });
            }
            Asked::Renewal if succeeded => {
                let (revision, until) = (self.leader_revision(), self.answers_until(sent));
                if let Some(office) = self.office() {
                    (office.revision, office.until) = (revision, until);
                }
                actions.push(Action::AnswerUntil(self.deadline(own)));
                self.look_after(received, own, &mut actions);
            }
            Asked::Release if succeeded => self.end(&mut actions),
            Asked::Release if self.is_released() => self.end(&mut actions),
            Asked::Renewal | Asked::Release => self.not_renewed(&mut actions),
            Asked::Takeover { .. } | Asked::Nothing => self.look_for_leader(own, &mut actions),
        }
        actions
    }

    /// A look at the clock: the office may have ended.
    pub fn tick(&mut self, now: Ns) -> Vec<Action> {
        let ended = self.office().is_some_and(|office| now >= office.until);
        match ended {
            true => self.fence("its lease has ended, and etcd has not renewed it"),
            false => Vec::new(),
        }
    }

    /// The node is to end in order.
    pub fn leave(&mut self) -> Vec<Action> {
        match std::mem::replace(&mut self.standing, Standing::Over) {
            Standing::Leader(office) => {
                self.standing = Standing::HandingOver(office, None);
                vec![Action::HandOver]
            }
            handing_over @ Standing::HandingOver(..) => {
                self.standing = handing_over;
                Vec::new()
            }
            Standing::Follower | Standing::Over => vec![Action::End],
        }
    }

    /// Notes what the view shows, and since when (F3: the time is that behind the answer).
    fn see(&mut self, received: Ns, view: View) {
        let seen = |last: Option<&Seen>, revision| match last {
            Some(last) if last.revision == revision => *last,
            _ => Seen {
                revision,
                since: received,
            },
        };
        self.leader_seen = Some(seen(self.leader_seen.as_ref(), view.leader_revision()));
        let members = view.members.iter().map(|(name, entry)| {
            let seen = seen(self.members_seen.get(name), entry.revision);
            (name.clone(), seen)
        });
        self.members_seen = members.collect();
        self.view = Some(view);
    }

    fn office(&mut self) -> Option<&mut Office> {
        match &mut self.standing {
            Standing::Leader(office) | Standing::HandingOver(office, _) => Some(office),
            Standing::Follower | Standing::Over => None,
        }
    }

    fn leader(&self) -> Option<&Entry<Leader>> {
        self.view.as_ref()?.leader.as_ref()
    }

    fn leader_revision(&self) -> i64 {
        self.view.as_ref().map_or(0, View::leader_revision)
    }

    /// F2.
    fn answers_until(&self, sent: Ns) -> Ns {
        sent + self.options.ttl_ns / 100 * ANSWER_PERCENT
    }

    /// The time until which the office lets it answer (F8).
    fn deadline(&mut self, own: &Own) -> Ns {
        let database = self.view.as_ref().and_then(|view| view.database);
        let is_known = database.is_some() && database == own.database;
        self.office()
            .filter(|_| is_known)
            .map_or(0, |office| office.until)
    }

    fn fence(&mut self, reason: &'static str) -> Vec<Action> {
        self.standing = Standing::Over;
        vec![Action::AnswerUntil(0), Action::Fence(reason)]
    }

    /// The office was given up, and the log is closed.
    fn end(&mut self, actions: &mut Vec<Action>) {
        self.standing = Standing::Over;
        actions.push(Action::End);
    }

    /// True if an earlier release was made, and its answer was lost.
    fn is_released(&self) -> bool {
        self.leader()
            .is_some_and(|entry| entry.value.instance == self.options.instance && entry.value.released)
    }

    /// A condition of a renewal did not hold.
    fn not_renewed(&mut self, actions: &mut Vec<Action>) {
        let instance = self.options.instance;
        let own_key = self
            .leader()
            .filter(|entry| entry.value.instance == instance && !entry.value.released)
            .map(|entry| entry.revision);
        match own_key {
            // An earlier renewal was made, and its answer was lost: the deadline stays that of the last one answered.
            Some(revision) => {
                if let Some(office) = self.office() {
                    office.revision = revision;
                }
            }
            None => actions.extend(self.fence("another node has taken over")),
        }
    }

    /// The office was renewed: sees to the standbys that commits wait for, and to an operator's wish.
    fn look_after(&mut self, now: Ns, own: &Own, actions: &mut Vec<Action>) {
        let Some(view) = &self.view else { return };
        let Standing::Leader(office) = &mut self.standing else {
            return;
        };
        let names = office.waits.names(view);
        if own.role == Role::Primary && office.waits_told.as_ref() != Some(&names) {
            office.waits_told = Some(names.clone());
            actions.push(Action::WaitFor(names));
        }
        let fresh = |name: &str| is_fresh(&self.members_seen, name, now, self.options.ttl_ns);
        let successor = view
            .switchover
            .as_ref()
            .map(|wish| wish.value.to.clone())
            .filter(|to| election::may_succeed(view, &self.options.name, to, own, fresh));
        if let Some(successor) = successor {
            let standing = std::mem::replace(&mut self.standing, Standing::Over);
            if let Standing::Leader(office) = standing {
                self.standing = Standing::HandingOver(office, Some(successor));
            }
            actions.push(Action::HandOver);
        }
    }

    /// This node does not hold the office: follows the one that does.
    fn look_for_leader(&mut self, own: &Own, actions: &mut Vec<Action>) {
        if !matches!(self.standing, Standing::Follower) {
            return;
        }
        let Some(view) = &self.view else { return };
        if let (Some(own), Some(database)) = (own.database, view.database)
            && own != database
        {
            let problem = format!(
                "the data directory is of the database {own}, and the cluster's is {database}: nothing was changed"
            );
            self.standing = Standing::Over;
            actions.push(Action::Refuse(problem));
            return;
        }
        let Some(leader) = view.leader.as_ref().map(|entry| &entry.value) else {
            return;
        };
        let Some(member) = view.members.get(&leader.name).map(|entry| &entry.value) else {
            return;
        };
        let is_other = leader.name != self.options.name && !leader.released;
        let followed = Some((leader.term, member.conninfo.clone()));
        if is_other && member.role == Role::Primary && self.followed != followed {
            actions.push(Action::Follow {
                name: leader.name.clone(),
                conninfo: member.conninfo.clone(),
            });
            self.followed = followed;
        }
    }
}

/// The most log that a standby may lack before commits wait for it, and the successor of a switchover: a segment.
const LAG_BYTES_MAX: u64 = 16 << 20;

/// True if the member's key was changed within `span` before `now`.
fn is_fresh(seen: &BTreeMap<String, Seen>, name: &str, now: Ns, span: Ns) -> bool {
    seen.get(name).is_some_and(|seen| now < seen.since + span)
}

/// F1: the office is as this node knows it.
fn holds(office: &Office) -> Condition {
    Condition {
        key: LEADER,
        revision: office.revision,
    }
}

/// The value of the office's key.
fn held(options: &Options, office: &Office) -> Leader {
    Leader {
        name: options.name.clone(),
        instance: options.instance,
        term: office.term,
        renewals: office.renewals,
        ttl_ms: options.ttl_ns / 1_000_000,
        released: false,
        successor: None,
    }
}

/// A renewal of the office, with what else is to change.
fn renewal(
    options: &Options,
    office: &mut Office,
    view: Option<&View>,
    own: &Own,
    is_fresh: impl Fn(&str) -> bool,
) -> (Vec<Condition>, Vec<Change>) {
    office.renewals += 1;
    let mut conditions = vec![holds(office)];
    let mut changes = vec![Change::put(LEADER, &held(options, office))];
    let Some(view) = view else {
        return (conditions, changes);
    };
    if view.database.is_none()
        && own.role == Role::Primary
        && let Some(database) = own.database
    {
        conditions.push(Condition {
            key: DATABASE,
            revision: 0,
        });
        changes.push(Change::put(DATABASE, &database));
    }
    if let Some(standbys) = office.waits.change(options, view, own, &is_fresh) {
        let value = Synchronous {
            leader: options.name.clone(),
            required: options.synchronous > 0,
            standbys,
        };
        conditions.push(Condition {
            key: SYNCHRONOUS,
            revision: view.synchronous_revision(),
        });
        changes.push(Change::put(SYNCHRONOUS, &value));
    }
    if let Some(wish) = &view.switchover
        && !election::may_succeed(view, &options.name, &wish.value.to, own, is_fresh)
    {
        changes.push(Change::Delete(SWITCHOVER.to_owned()));
    }
    (conditions, changes)
}
