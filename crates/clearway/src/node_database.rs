//! The database of a node: its engine, server and receiver, as the node's decisions want them.
//!
//! | asked for | by the directory | steps |
//! | --- | --- | --- |
//! | lead | none | make a database |
//! | | a former primary's | open it |
//! | | a standby's, open | end receiving, promote |
//! | follow | not open | make it one that can follow ([`node_directory`](crate::node_directory)), open as a standby, receive |
//! | | a standby's, open | receive from there from now on |
//!
//! One thread, [`NodeDatabase::work`], does the steps that can take long, in the order in which it was asked for.
//!
//! A directory that has to be copied anew while it is open is marked; the process begins anew, and copies it before it is
//! opened.

use std::sync::mpsc::{Receiver as Channel, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use clearway_engine::{Config, Engine};
use clearway_node::checks::Checked;
use clearway_node::cluster_state::Role;
use clearway_node::decision::{Ns, Own};
use clearway_node::run::{Database, Ended, Shown};
use clearway_server::replication::following::Following;
use clearway_server::replication::receiver::client::Client;
use clearway_server::replication::receiver::conninfo::ConnInfo;
use clearway_server::{AnswerDeadline, Server, StopSignal};
use clearway_storage::sync_replication::StandbyNames;

use crate::error::{CommandError, Result};
use crate::metrics::MetricsPage;
use crate::node_directory::{Closed, NodeDirectory};
use crate::node_following;
use crate::output::notice;
use crate::serve::{OnPanic, addresses};
use crate::signals::OnHangUp;
use crate::supervisor;

/// The time between two attempts to follow a node that does not answer.
const RETRY: Duration = Duration::from_secs(1);
/// The time that replay has to become ready for a promotion.
const PROMOTION_PATIENCE: Duration = Duration::from_secs(30);

/// The parts that a node's database is made of.
pub(crate) struct NodeDatabaseOptions {
    pub(crate) name: String,
    pub(crate) directory: NodeDirectory,
    /// Reads the configuration again.
    pub(crate) load: Arc<dyn Fn() -> Result<Config> + Send + Sync>,
    pub(crate) config: Config,
    pub(crate) follow_with: String,
    pub(crate) deadline: AnswerDeadline,
    /// Given when the node is to end.
    pub(crate) stop: StopSignal,
    /// Ends the server.
    pub(crate) server_stop: StopSignal,
    pub(crate) on_hang_up: OnHangUp,
    /// The page of metrics, which shows the engine.
    pub(crate) metrics: MetricsPage,
}

enum Command {
    Lead {
        term: u64,
        /// No node has a database: this one makes it.
        initialises: bool,
    },
    Follow {
        name: String,
        conninfo: String,
    },
    End,
}

struct State {
    role: Role,
    closed: Option<Closed>,
    engine: Option<Arc<Engine>>,
    following: Option<Following>,
    /// The node that is followed, and its connection string.
    follows: Option<(String, String)>,
    stopped: bool,
    failure: Option<String>,
}

/// See the module.
pub(crate) struct NodeDatabase {
    options: NodeDatabaseOptions,
    state: Mutex<State>,
    /// The standbys that commits wait for.
    waits_for: Mutex<Vec<String>>,
    commands: Mutex<Sender<Command>>,
    asked: Mutex<Option<Channel<Command>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The setting by which commits wait for all of these.
fn setting(names: &[String]) -> String {
    match names {
        [] => String::new(),
        names => {
            let quoted: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
            format!("FIRST {} ({})", names.len(), quoted.join(", "))
        }
    }
}

impl NodeDatabase {
    /// That of the directory, which is not opened yet.
    pub(crate) fn new(mut options: NodeDatabaseOptions) -> Result<NodeDatabase> {
        // The node says for which standbys commits wait.
        options.config.synchronous_standby_names.clear();
        let (role, closed) = options.directory.look()?;
        let (commands, asked) = channel();
        Ok(NodeDatabase {
            options,
            state: Mutex::new(State {
                role,
                closed,
                engine: None,
                following: None,
                follows: None,
                stopped: false,
                failure: None,
            }),
            waits_for: Mutex::default(),
            commands: Mutex::new(commands),
            asked: Mutex::new(Some(asked)),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn ask(&self, command: Command) {
        // Without a receiver the process is about to end.
        let _ = lock(&self.commands).send(command);
    }

    /// The server has ended all sessions. In order it was if it was asked to, and has closed the engine.
    pub(crate) fn server_has_ended<E: std::fmt::Display>(&self, outcome: &Result<(), E>) {
        match outcome {
            Ok(()) if self.options.server_stop.is_stopped() => self.state().stopped = true,
            Ok(()) => self.fail("the server has ended by itself".to_owned()),
            Err(error) => self.fail(format!("the server has ended: {error}")),
        }
    }

    /// Ends the node: a part of it is gone, without which it must not keep its office.
    pub(crate) fn fail(&self, problem: String) {
        let mut state = self.state();
        state.role = Role::Failed;
        state.failure.get_or_insert(problem);
    }

    /// Nothing that a primary says leaves any more, unless the node ends in order.
    pub(crate) fn answer_until_the_end(&self, ended: &Ended) {
        let in_order = matches!(ended, Ended::Asked | Ended::HandedOver | Ended::CopyAnew);
        if !in_order {
            self.options.deadline.set_ns(0);
        }
    }

    /// Makes a panic of the calling thread, which is `part`, end the node.
    pub(crate) fn failed_by_panic(&self, part: &'static str) -> OnPanic<impl Fn() + '_> {
        OnPanic(move || self.fail(format!("{part} has ended by a panic")))
    }

    /// Has [`work`](Self::work) return.
    pub(crate) fn end_work(&self) {
        self.ask(Command::End);
    }

    /// The state that the checks tell.
    pub(crate) fn checked(&self, shown: &Shown) -> Checked {
        let own = self.own();
        let (leads, view) = shown.get();
        let end = view.as_ref().and_then(|view| {
            let leader = view.leader.as_ref()?;
            Some(view.members.get(&leader.value.name)?.value.position)
        });
        Checked {
            role: own.role,
            answers: leads && !self.options.deadline.has_passed(),
            streams: own.streams,
            lag: end.map(|end| end.saturating_sub(own.position)),
            timeline: own.timeline,
            position: own.position,
        }
    }

    /// Does what is asked for until [`end_work`](Self::end_work).
    pub(crate) fn work(&self, server: &Server) {
        let Some(asked) = lock(&self.asked).take() else {
            return;
        };
        if self.state().role == Role::Starting {
            let opened = self.open_standby(server).map(drop);
            self.note(opened);
        }
        let mut pending: Option<Command> = None;
        let mut told = String::new();
        loop {
            let next = match pending.is_some() {
                true => asked.recv_timeout(RETRY),
                false => asked.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            let command = match (next, pending.take()) {
                // A newer wish replaces one that has failed.
                (Ok(command), _) => command,
                (Err(RecvTimeoutError::Timeout), Some(command)) => command,
                _ => return,
            };
            match command {
                Command::Lead { term, initialises } => {
                    let led = self.become_primary(server, term, initialises);
                    self.note(led);
                }
                Command::Follow { name, conninfo } => {
                    if let Err(error) = self.become_standby(server, &name, &conninfo) {
                        let problem = format!("cannot follow {name} yet: {error}");
                        if problem != told {
                            notice(format_args!("{problem}"));
                            told = problem;
                        }
                        pending = Some(Command::Follow { name, conninfo });
                    }
                }
                Command::End => {
                    // Its end is waited for, and the state is not locked meanwhile.
                    let following = self.state().following.take();
                    drop(following);
                    return;
                }
            }
        }
    }

    /// An error ends the node.
    fn note(&self, outcome: Result<()>) {
        if let Err(error) = outcome {
            self.fail(error.to_string());
        }
    }

    /// The engine is open: clients are served.
    fn opened(&self, server: &Server, engine: &Arc<Engine>, role: Role) {
        notice(format_args!("{}", crate::serve::recovery_line(engine)));
        let on_hang_up = &self.options.on_hang_up;
        let load = Arc::clone(&self.options.load);
        on_hang_up.reload_with(
            move || load(),
            engine,
            |config, take| {
                config.synchronous_standby_names.clear();
                take(config)
            },
        );
        self.options.metrics.show(engine);
        server.ready(Arc::clone(engine));
        supervisor::ready(&addresses(server));
        let mut state = self.state();
        (state.role, state.engine) = (role, Some(Arc::clone(engine)));
    }

    fn become_primary(&self, server: &Server, term: u64, initialises: bool) -> Result<()> {
        let data = self.options.directory.path();
        // It has what it has.
        self.options.directory.unmark();
        let (engine, following) = {
            let mut state = self.state();
            state.role = Role::Starting;
            state.follows = None;
            (state.engine.clone(), state.following.take())
        };
        let Some(engine) = engine else {
            // A copy of the node that led before may have begun meanwhile.
            if !initialises && self.options.directory.wants_copy()? {
                let problem = format!(
                    "{} is to lead, and {} has no database",
                    self.options.name,
                    data.display()
                );
                return Err(CommandError::Node(problem));
            }
            let engine = Engine::open(data, self.options.config.clone())
                .map_err(CommandError::database("opening", data))?;
            self.opened(server, &engine, Role::Primary);
            notice(format_args!("{} leads, in term {term}", self.options.name));
            return Ok(());
        };
        let until = Instant::now() + PROMOTION_PATIENCE;
        while let Err(error) = engine.check_promotion() {
            if Instant::now() >= until {
                return Err(CommandError::database("promoting", data)(error));
            }
            thread::sleep(Duration::from_millis(50));
        }
        let reason = format!("term {term} of the cluster");
        let promoted = match following {
            Some(following) => following.promote(&reason),
            None => engine.promote(&reason),
        };
        let (timeline, begins) = promoted.map_err(CommandError::database("promoting", data))?;
        self.state().role = Role::Primary;
        notice(format_args!(
            "{} leads, in term {term}: timeline {timeline} begins at {begins}",
            self.options.name
        ));
        Ok(())
    }

    fn open_standby(&self, server: &Server) -> Result<Arc<Engine>> {
        self.options.directory.complete_copy()?;
        let data = self.options.directory.path();
        let engine = Engine::open_standby(data, self.options.config.clone())
            .map_err(CommandError::database("opening", data))?;
        self.opened(server, &engine, Role::Standby);
        Ok(engine)
    }

    fn become_standby(&self, server: &Server, name: &str, conninfo: &str) -> Result<()> {
        let followed = Some((name.to_owned(), conninfo.to_owned()));
        let words = format!(
            "{conninfo} {} application_name={}",
            self.options.follow_with, self.options.name
        );
        let conninfo: ConnInfo = words.parse()?;
        let engine = {
            let state = self.state();
            let receives = state.following.as_ref().is_some_and(|last| !last.has_ended());
            if state.follows == followed && receives {
                return Ok(());
            }
            state.engine.clone()
        };
        let (engine, keeps_log) = match engine {
            Some(engine) => {
                let last = self.state().following.take();
                drop(last);
                (engine, None)
            }
            None => {
                let keeps_log = self.fit_directory(&conninfo)?;
                (self.open_standby(server)?, Some(keeps_log))
            }
        };
        let following = node_following::start(
            &engine,
            &self.options.config,
            self.options.directory.path(),
            conninfo,
            keeps_log,
        )?;
        let mut state = self.state();
        (state.following, state.follows) = (Some(following), followed);
        Ok(())
    }

    /// Makes the directory one that can follow the server. The connection makes that one keep its log.
    ///
    /// While it is changed it is no server's, and leads no cluster. After a failure it is what it is then.
    fn fit_directory(&self, conninfo: &ConnInfo) -> Result<Client> {
        let NodeDatabaseOptions {
            directory,
            config,
            stop,
            ..
        } = &self.options;
        let fitted = directory.fit(conninfo, config, stop, || {
            let mut state = self.state();
            (state.role, state.closed) = (Role::Starting, None);
        });
        if fitted.is_err() {
            let found = directory.look()?;
            let mut state = self.state();
            (state.role, state.closed) = found;
        }
        fitted
    }
}

impl Database for NodeDatabase {
    fn now_ns(&self) -> Ns {
        AnswerDeadline::now_ns()
    }

    fn own(&self) -> Own {
        // Before the position (F5).
        let waits_for = lock(&self.waits_for).clone();
        let state = self.state();
        let mut own = Own {
            role: state.role,
            database: state.closed.as_ref().map(|closed| closed.database),
            waits_for,
            timeline: state.closed.as_ref().map_or(0, |closed| closed.timeline),
            position: state.closed.as_ref().map_or(0, |closed| closed.end),
            follows: state.follows.as_ref().map(|(name, _)| name.clone()),
            streams: state.following.as_ref().is_some_and(Following::streams),
            followers: Vec::new(),
            stopped: state.stopped,
        };
        let Some(engine) = &state.engine else {
            return own;
        };
        let storage = engine.storage();
        let failure = storage.standby().and_then(|standby| standby.failure());
        if own.role == Role::Standby && failure.is_some() {
            // It cannot be promoted: as a candidate it would win, and end.
            own.role = Role::Failed;
        }
        own.database = Some(storage.system_identifier());
        own.timeline = storage.timeline();
        own.position = match own.role {
            Role::Primary => storage.wal.reserved().0,
            _ => storage.durable_log_end().0,
        };
        if own.role == Role::Primary {
            let sessions = engine.activity();
            let followers = storage.retention.followers();
            let followers = followers.iter().filter(|follower| !follower.is_backup);
            own.followers = followers
                .filter_map(|follower| {
                    let session = sessions.iter().find(|s| s.process_id == follower.process_id)?;
                    Some(session.application_name.clone())
                })
                .collect();
        }
        own
    }

    fn answer_until(&self, time_ns: Ns) {
        self.options.deadline.set_ns(time_ns);
    }

    fn lead(&self, term: u64) {
        let last = std::mem::replace(&mut self.state().role, Role::Starting);
        let initialises = last == Role::Absent;
        self.ask(Command::Lead { term, initialises });
    }

    fn follow(&self, name: &str, conninfo: &str) {
        self.ask(Command::Follow {
            name: name.to_owned(),
            conninfo: conninfo.to_owned(),
        });
    }

    fn wait_for(&self, names: &[String]) {
        let Some(engine) = self.state().engine.clone() else {
            return;
        };
        let parsed = StandbyNames::parse(&setting(names));
        match parsed {
            Ok(parsed) => {
                engine.storage().sync_replication.set_names(parsed);
                *lock(&self.waits_for) = names.to_vec();
                match names {
                    [] => notice(format_args!("commits wait for no standby")),
                    names => notice(format_args!("commits wait for {}", names.join(", "))),
                }
            }
            // Names of nodes are plain. Commits wait for those that they waited for.
            Err(error) => notice(format_args!("the standbys that commits wait for: {error}")),
        }
    }

    fn hand_over(&self) {
        notice(format_args!("handing over: stopping in order"));
        self.options.server_stop.stop();
    }

    fn is_to_end(&self) -> bool {
        self.options.stop.is_stopped()
    }

    fn is_to_begin_anew(&self) -> bool {
        self.state().engine.is_some() && self.options.directory.is_to_be_copied_anew()
    }

    fn failure(&self) -> Option<String> {
        self.state().failure.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn database(data: &std::path::Path) -> NodeDatabase {
        let config = Config::default();
        NodeDatabase::new(NodeDatabaseOptions {
            name: "alice".to_owned(),
            directory: NodeDirectory::new(data, &config).unwrap(),
            load: Arc::new(|| Ok(Config::default())),
            config,
            follow_with: String::new(),
            deadline: AnswerDeadline::default(),
            stop: StopSignal::new().unwrap(),
            server_stop: StopSignal::new().unwrap(),
            on_hang_up: OnHangUp::default(),
            metrics: MetricsPage::default(),
        })
        .unwrap()
    }

    #[test]
    fn a_part_that_ends_by_itself_ends_the_node() {
        let place = tempfile::tempdir().unwrap();
        let data = place.path().join("data");
        let server = database(&data);
        server.server_has_ended::<CommandError>(&Ok(()));
        assert_eq!(server.failure().unwrap(), "the server has ended by itself");
        assert_eq!((server.own().role, server.own().stopped), (Role::Failed, false));

        // A log that was not closed is not handed over.
        let server = database(&data);
        server.options.server_stop.stop();
        server.server_has_ended(&Err(CommandError::Node("no checkpoint".to_owned())));
        assert_eq!(server.failure().unwrap(), "the server has ended: no checkpoint");
        assert!(!server.own().stopped);

        let asked = database(&data);
        asked.options.server_stop.stop();
        asked.server_has_ended::<CommandError>(&Ok(()));
        assert_eq!((asked.failure(), asked.own().stopped), (None, true));

        let worker = database(&data);
        let panicked = thread::scope(|scope| {
            let panics = || {
                let _ends = worker.failed_by_panic("the thread of its database");
                panic!("on purpose");
            };
            scope.spawn(panics).join().is_err()
        });
        assert!(panicked);
        assert_eq!(
            worker.failure().unwrap(),
            "the thread of its database has ended by a panic"
        );
    }

    #[test]
    fn a_node_that_does_not_end_in_order_answers_nothing_more() {
        let place = tempfile::tempdir().unwrap();
        let node = database(&place.path().join("data"));
        let deadline = &node.options.deadline;
        let cases = [
            (Ended::Asked, false),
            (Ended::HandedOver, false),
            (Ended::CopyAnew, false),
            (Ended::Fenced("on purpose"), true),
            (Ended::Failed("on purpose".to_owned()), true),
        ];
        for (ended, is_silent) in cases {
            deadline.set_ns(u64::MAX);
            node.answer_until_the_end(&ended);
            assert_eq!(deadline.has_passed(), is_silent, "{ended:?}");
        }
    }

    #[test]
    fn an_attempt_that_changes_nothing_leaves_a_former_primary_in_the_election() {
        let place = tempfile::tempdir().unwrap();
        let data = place.path().join("data");
        let (storage, _) =
            clearway_storage::Storage::open(&data, clearway_storage::StorageOptions::default()).unwrap();
        storage.shutdown().unwrap();
        drop(storage);
        let former = database(&data);
        let before = former.own();
        assert_eq!(before.role, Role::Former);
        // A port on which no server listens.
        let free = std::net::TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        let conninfo: ConnInfo = format!("host=127.0.0.1 port={}", free.port()).parse().unwrap();
        assert!(former.fit_directory(&conninfo).is_err());
        assert_eq!(former.own(), before);
        // What an attempt leaves that had begun.
        (former.state().role, former.state().closed) = (Role::Starting, None);
        assert!(former.fit_directory(&conninfo).is_err());
        assert_eq!(former.own(), before);
    }
}
