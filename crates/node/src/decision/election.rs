//! The node that takes an office that is free (F1, F3, F4).
//!
//! Of those that may, the one with most log tries first; the others give it [`HEAD_START`] intervals. That is for less loss
//! where commits do not wait for standbys; which one comes first decides the transaction.

use std::cmp::Reverse;

use super::{Decision, LAG_BYTES_MAX, Ns, Own, WAIT_PERCENT, is_fresh};
use crate::cluster_state::{Change, Condition, LEADER, Leader, Member, Role, SYNCHRONOUS, Synchronous, View};

/// The intervals that a node with more log has for itself.
const HEAD_START: u64 = 3;
/// The intervals after which a member that has written nothing is no rival.
const RIVAL_INTERVALS: u64 = 4;

/// A takeover: its term, conditions and changes.
pub(super) type Takeover = (u64, Vec<Condition>, Vec<Change>);

impl Decision {
    /// The transaction by which this node takes the office, if it may do so at `now`.
    pub(super) fn takeover(&self, now: Ns, own: &Own) -> Option<Takeover> {
        let view = self.view.as_ref()?;
        let free_at = self.free_at(own)?;
        if !self.is_candidate(view, own) || now < free_at {
            return None;
        }
        let has_rival = view.members.iter().any(|(name, entry)| {
            let is_alive = is_fresh(
                &self.members_seen,
                name,
                now,
                RIVAL_INTERVALS * self.options.interval_ns,
            );
            *name != self.options.name && is_alive && self.is_ahead(view, name, &entry.value, own)
        });
        if has_rival && now < free_at.saturating_add(HEAD_START * self.options.interval_ns) {
            return None;
        }
        let last = view.leader.as_ref().map(|entry| &entry.value);
        let term = last.map_or(0, |leader| leader.term) + 1;
        let conditions = vec![
            Condition {
                key: LEADER,
                revision: view.leader_revision(),
            },
            Condition {
                key: SYNCHRONOUS,
                revision: view.synchronous_revision(),
            },
        ];
        let leader = Leader {
            name: self.options.name.clone(),
            instance: self.options.instance,
            term,
            renewals: 0,
            ttl_ms: self.options.ttl_ns / 1_000_000,
            released: false,
            successor: None,
        };
        // From now on only this node has what is acknowledged, until a standby has it, too.
        let synchronous = Synchronous {
            leader: self.options.name.clone(),
            required: self.options.synchronous > 0,
            standbys: Vec::new(),
        };
        let changes = vec![
            Change::put(LEADER, &leader),
            Change::put(SYNCHRONOUS, &synchronous),
        ];
        Some((term, conditions, changes))
    }

    /// True if this node may lead at all.
    fn is_candidate(&self, view: &View, own: &Own) -> bool {
        // A primary that was restarted may lead again: no *other* one takes over.
        if view.paused && view.database.is_some() && !self.held_last(view) {
            return false;
        }
        match own.role {
            Role::Standby | Role::Former => {
                (view.database.is_none() || view.database == own.database) && view.admits(&self.options.name)
            }
            // It would initialise: only where no node has a database.
            Role::Absent => {
                let has_data = |member: &Member| {
                    matches!(
                        member.role,
                        Role::Standby | Role::Former | Role::Primary | Role::Unknown
                    )
                };
                // One with a database is to be fitted to another node's first.
                own.database.is_none()
                    && view.database.is_none()
                    && !view.members.values().any(|entry| has_data(&entry.value))
            }
            Role::Starting | Role::Primary | Role::Failed | Role::Unknown => false,
        }
    }

    /// True if no other node has held the office since this one.
    fn held_last(&self, view: &View) -> bool {
        view.leader
            .as_ref()
            .is_some_and(|entry| entry.value.name == self.options.name)
    }

    /// The time from which the office may be taken (F3).
    fn free_at(&self, own: &Own) -> Option<Ns> {
        let seen = self.leader_seen?;
        let Some(entry) = self.leader() else {
            let wait = match own.role {
                // It only makes the first database; where another one is answered for, F8 holds.
                Role::Absent => 0,
                _ => self.options.ttl_ns / 100 * WAIT_PERCENT,
            };
            return Some(seen.since.saturating_add(wait));
        };
        let leader = &entry.value;
        let for_other = leader
            .successor
            .as_ref()
            .is_some_and(|successor| *successor != self.options.name);
        let is_own = leader.instance == self.options.instance;
        match is_own || leader.released && !for_other {
            true => Some(seen.since),
            // Of the holder's own time to live.
            false => {
                let wait = leader.ttl_ms.saturating_mul(10_000 * WAIT_PERCENT);
                Some(seen.since.saturating_add(wait))
            }
        }
    }

    /// True if the member would lead, and has more log.
    fn is_ahead(&self, view: &View, name: &str, member: &Member, own: &Own) -> bool {
        let may_lead = match own.role {
            Role::Absent => member.role == Role::Absent,
            _ => matches!(member.role, Role::Standby | Role::Former),
        };
        let key = |timeline, position, name| (timeline, position, Reverse(name));
        may_lead
            && view.admits(name)
            && key(member.timeline, member.position, name)
                > key(own.timeline, own.position, self.options.name.as_str())
    }
}

/// True if the primary `leader` can hand the office over to the node `to` now.
pub(super) fn may_succeed(
    view: &View,
    leader: &str,
    to: &str,
    own: &Own,
    is_fresh: impl Fn(&str) -> bool,
) -> bool {
    let Some(member) = view.members.get(to).map(|entry| &entry.value) else {
        return false;
    };
    // In a pause the successor would not take over, and no node would lead.
    !view.paused
        && to != leader
        && own.role == Role::Primary
        && is_fresh(to)
        && view.admits(to)
        && member.role == Role::Standby
        && member.streams
        && member.follows.as_deref() == Some(leader)
        && member.timeline == own.timeline
        && member.position + LAG_BYTES_MAX >= own.position
}
