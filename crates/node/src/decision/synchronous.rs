//! The standbys that commits wait for, and that may be promoted (F5).
//!
//! ```text
//!              commits wait for it     it has the log up to p      the key names it
//!   fit ──▶ joining ─────────────▶ p is read ─────────────▶ a transaction ─────────▶ member
//!    ▲                                                                                 │ unfit
//!    └──── commits do not wait for it ◀──── the key names it no more ◀── a transaction ┘
//! ```
//!
//! Commits that were acknowledged before they waited for it lie before *p*, which is read after (S7 of
//! `clearway_storage::sync_replication`). So once it has the log up to *p*, each acknowledged commit is on it, and each later
//! one is acknowledged when it is.
//!
//! With none left, the primary goes on by itself, and no other node may be promoted.

use std::collections::BTreeMap;

use super::{LAG_BYTES_MAX, Options, Own};
use crate::cluster_state::{Role, View};

/// The transactions in a row that find a standby unfit before commits wait for it no more.
const UNFIT_MAX: u32 = 2;
/// The transactions after which one that does not catch up is given up.
const JOINING_MAX: u32 = 20;

/// A standby that commits wait for, and that may lack what is older.
#[derive(Debug)]
struct Joining {
    name: String,
    /// The position that it needs.
    position: Option<u64>,
    looks: u32,
}

/// The standbys of a primary.
#[derive(Debug, Default)]
pub(super) struct Waits {
    joining: Option<Joining>,
    /// The transactions in a row that have found a standby unfit.
    unfit: BTreeMap<String, u32>,
}

impl Waits {
    /// The standbys that commits are to wait for.
    pub(super) fn names(&self, view: &View) -> Vec<String> {
        let joining = self.joining.iter().map(|joining| joining.name.clone());
        let mut names: Vec<String> = named(view).iter().cloned().chain(joining).collect();
        names.sort();
        names.dedup();
        names
    }

    /// The standbys that the key is to name, if others than those that it names.
    pub(super) fn change(
        &mut self,
        options: &Options,
        view: &View,
        own: &Own,
        is_fresh: &impl Fn(&str) -> bool,
    ) -> Option<Vec<String>> {
        if own.role != Role::Primary {
            return None;
        }
        let is_fit = |name: &str| fits(options, view, own, name) && is_fresh(name);
        self.note_unfit(view, &is_fit);
        let stays = |name: &&String| self.unfit.get(*name).is_none_or(|count| *count < UNFIT_MAX);
        let mut standbys: Vec<String> = named(view)
            .iter()
            .filter(stays)
            .take(options.synchronous)
            .cloned()
            .collect();
        if standbys.len() == named(view).len()
            && let Some(joined) = self.join(options, view, own, &is_fit)
        {
            standbys.push(joined);
        }
        (standbys != named(view)).then_some(standbys)
    }

    fn note_unfit(&mut self, view: &View, is_fit: &impl Fn(&str) -> bool) {
        let counted = named(view).iter().filter(|name| !is_fit(name)).map(|name| {
            let count = self.unfit.get(name).copied().unwrap_or(0);
            (name.clone(), count + 1)
        });
        self.unfit = counted.collect();
    }

    /// A step of the standby that joins; its name once it has all.
    fn join(
        &mut self,
        options: &Options,
        view: &View,
        own: &Own,
        is_fit: &impl Fn(&str) -> bool,
    ) -> Option<String> {
        let is_given_up = self.joining.as_ref().is_some_and(|joining| {
            joining.looks > JOINING_MAX || named(view).contains(&joining.name) || !is_fit(&joining.name)
        });
        if is_given_up || named(view).len() >= options.synchronous {
            self.joining = None;
        }
        if named(view).len() >= options.synchronous {
            return None;
        }
        let Some(joining) = &mut self.joining else {
            let next = view
                .members
                .iter()
                .filter(|(name, entry)| {
                    let is_near = entry.value.position + LAG_BYTES_MAX >= own.position;
                    is_near && !named(view).contains(name) && is_fit(name)
                })
                .max_by_key(|(_, entry)| entry.value.position);
            self.joining = next.map(|(name, _)| Joining {
                name: name.clone(),
                position: None,
                looks: 0,
            });
            return None;
        };
        joining.looks += 1;
        let Some(needed) = joining.position else {
            if own.waits_for.contains(&joining.name) {
                joining.position = Some(own.position);
            }
            return None;
        };
        let has = view.members.get(&joining.name)?.value.position;
        (has >= needed).then(|| joining.name.clone())
    }
}

/// The standbys that the key names.
fn named(view: &View) -> &[String] {
    view.synchronous
        .as_ref()
        .map_or(&[], |entry| entry.value.standbys.as_slice())
}

/// True if the node receives this primary's log.
fn fits(options: &Options, view: &View, own: &Own, name: &str) -> bool {
    let Some(member) = view.members.get(name).map(|entry| &entry.value) else {
        return false;
    };
    member.role == Role::Standby
        && member.streams
        && member.timeline == own.timeline
        && member.follows.as_deref() == Some(options.name.as_str())
        && own.followers.iter().any(|follower| follower == name)
}
