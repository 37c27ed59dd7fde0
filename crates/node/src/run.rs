//! The loop of a node: asks etcd at each interval, and carries out what is decided.
//!
//! The thread that runs it does nothing that can take long but wait for etcd, whose time limit is a part of the time to live.
//! The database is started, promoted and stopped on a thread of the program's.

use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use tracing::{debug, info, warn};

use crate::cluster_state::View;
use crate::decision::{Action, Decision, Ns, Options, Own};
use crate::etcd::Etcd;

/// The longest time between two looks at the clock and at whether the node is to end.
const LOOK: Duration = Duration::from_millis(50);

/// The subject of the decisions: the program's server. All but [`wait_for`](Database::wait_for) and
/// [`answer_until`](Database::answer_until) begin something and return at once.
pub trait Database: Sync {
    /// A time that goes on while the process is stopped.
    fn now_ns(&self) -> Ns;
    /// Its state.
    fn own(&self) -> Own;
    /// Answers leave until this time; 0: none.
    fn answer_until(&self, time_ns: Ns);
    /// It becomes a primary.
    fn lead(&self, term: u64);
    /// It follows that node.
    fn follow(&self, name: &str, conninfo: &str);
    /// Commits wait for these standbys when it returns.
    fn wait_for(&self, names: &[String]);
    /// It stops in order.
    fn hand_over(&self);
    /// True once the directory has to be copied anew, which a process does that begins anew.
    fn is_to_begin_anew(&self) -> bool;
    /// True once the node is to end in order.
    fn is_to_end(&self) -> bool;
    /// The error that ends the node, if there is one.
    fn failure(&self) -> Option<String>;
}

/// The reason why a node has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// It was a primary and may be none any more.
    Fenced(&'static str),
    /// It has handed the office over to another node.
    HandedOver,
    /// It follows, and its directory has to be copied anew.
    CopyAnew,
    /// It was asked to end.
    Asked,
    /// It cannot go on.
    Failed(String),
}

/// The view of the cluster that the checks answer by.
#[derive(Debug, Default)]
pub struct Shown(Mutex<(bool, Option<View>)>);

impl Shown {
    fn set(&self, leads: bool, view: Option<&View>) {
        *self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = (leads, view.cloned());
    }

    /// True if the node holds the office, and the last view.
    pub fn get(&self) -> (bool, Option<View>) {
        self.0
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
            .clone()
    }
}

/// Runs a node until it ends. A request that etcd refuses is like one that it does not answer: an operator may mend it.
/// However the run ends, no answer of the database as a primary leaves after the last deadline that the node gave it.
pub fn run(options: Options, etcd: &mut Etcd, database: &dyn Database, shown: &Shown) -> Ended {
    let interval = options.interval_ns;
    let mut decision = Decision::new(options);
    let mut asks_at = 0;
    let mut is_asked = false;
    let mut told_of_silence = false;
    loop {
        let mut actions = decision.tick(database.now_ns());
        if let Some(problem) = database.failure() {
            database.answer_until(0);
            return Ended::Failed(problem);
        }
        if !decision.leads() && database.is_to_begin_anew() {
            return Ended::CopyAnew;
        }
        if database.is_to_end() && !is_asked {
            is_asked = true;
            actions.extend(decision.leave());
        }
        let now = database.now_ns();
        if actions.is_empty() && now >= asks_at {
            asks_at = now + interval;
            let own = database.own();
            let transaction = decision.request(now, &own, wall_clock_s());
            // F2: the time before it is sent.
            let sent = database.now_ns();
            match etcd.transact(&transaction) {
                Ok(outcome) => {
                    if told_of_silence {
                        info!("etcd answers again");
                        told_of_silence = false;
                    }
                    actions = decision.answered(sent, database.now_ns(), outcome, &own);
                    shown.set(decision.leads(), decision.view());
                }
                Err(error) => {
                    decision.unanswered();
                    match told_of_silence {
                        true => debug!("{error}"),
                        false => warn!("{error}"),
                    }
                    told_of_silence = true;
                }
            }
        }
        if let Some(ended) = carry_out(actions, database, is_asked) {
            shown.set(false, decision.view());
            return ended;
        }
        let left = asks_at.saturating_sub(database.now_ns());
        thread::sleep(LOOK.min(Duration::from_nanos(left)));
    }
}

/// Carries out what was decided; the end of the node, if it is that.
fn carry_out(actions: Vec<Action>, database: &dyn Database, is_asked: bool) -> Option<Ended> {
    for action in actions {
        match action {
            Action::AnswerUntil(time) => database.answer_until(time),
            Action::Lead { term } => database.lead(term),
            Action::Follow { name, conninfo } => database.follow(&name, &conninfo),
            Action::WaitFor(names) => database.wait_for(&names),
            Action::HandOver => database.hand_over(),
            Action::Fence(reason) => return Some(Ended::Fenced(reason)),
            Action::End if is_asked => return Some(Ended::Asked),
            Action::End => return Some(Ended::HandedOver),
            Action::Refuse(problem) => return Some(Ended::Failed(problem)),
        }
    }
    None
}

/// Seconds since 1970, for display alone.
fn wall_clock_s() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |since| since.as_secs())
}
