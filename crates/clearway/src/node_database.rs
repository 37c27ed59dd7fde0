//! The database of a node: its directory, engine, server and receiver, as the node's decisions want them.
//!
//! | asked for | by the directory | steps |
//! | --- | --- | --- |
//! | lead | none | make a database |
//! | | a former primary's | open it |
//! | | a standby's, open | end receiving, promote |
//! | follow | none | copy, open as a standby, receive |
//! | | a former primary's | as a standby if the other's log goes on from all of its own; otherwise it is rewound, and where that cannot be done, moved aside and copied |
//! | | one whose rewind was interrupted | rewind on, then as above |
//! | | a standby's, open | receive from there from now on |
//!
//! One thread, [`NodeDatabase::work`], does the steps that can take long, in the order in which it was asked for.
//!
//! A directory that has to be copied anew while it is open is marked ([`COPY_ANEW`]); the process begins anew, and moves it
//! aside before it is opened.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver as Channel, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use clearway_engine::{Config, Engine};
use clearway_node::checks::Checked;
use clearway_node::cluster_state::Role;
use clearway_node::decision::{Ns, Own};
use clearway_node::run::{Database, Ended, Shown};
use clearway_server::replication::following::{Following, FollowingEvent, FormerPrimary, Promotions};
use clearway_server::replication::receiver::client::Client;
use clearway_server::replication::receiver::conninfo::ConnInfo;
use clearway_server::replication::receiver::rewind::{RewindEvent, RewindOutcome, RewindRequest, rewind};
use clearway_server::replication::receiver::run::{ReceiverEvent, ReceiverOptions};
use clearway_server::replication::receiver::stream::StreamOptions;
use clearway_server::replication::receiver::{ReceiverError, base_backup};
use clearway_server::{AnswerDeadline, Server, StopSignal};
use clearway_storage::StorageError;
use clearway_storage::directory_log::DirectoryLog;
use clearway_storage::directory_state::directory_state;
use clearway_storage::received_copy::copy_is_wanted;
use clearway_storage::rewind::rewind_is_unfinished;
use clearway_storage::sync_replication::StandbyNames;

use crate::error::{CommandError, Result};
use crate::options::ConfigOptions;
use crate::output::notice;
use crate::signals::OnHangUp;

/// The file in a data directory that asks for a new copy at the next start.
const COPY_ANEW: &str = "copy.anew";
/// The reason for which a database cannot follow a server as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Parted {
    /// It has log of its own, or its rewind was interrupted.
    Rewindable,
    /// The server no longer has the log that follows.
    LogRemoved,
}

/// The time between two attempts to follow a node that does not answer.
const RETRY: Duration = Duration::from_secs(1);
/// The time that replay has to become ready for a promotion.
const PROMOTION_PATIENCE: Duration = Duration::from_secs(30);

/// The parts that a node's database is made of.
pub(crate) struct NodeDatabaseOptions {
    pub(crate) name: String,
    pub(crate) data: PathBuf,
    pub(crate) config_options: ConfigOptions,
    pub(crate) config: Config,
    pub(crate) follow_with: String,
    pub(crate) deadline: AnswerDeadline,
    /// Given when the node is to end.
    pub(crate) stop: StopSignal,
    /// Ends the server.
    pub(crate) server_stop: StopSignal,
    pub(crate) on_hang_up: OnHangUp,
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

/// A directory that is not open.
struct Closed {
    database: u64,
    timeline: u32,
    end: u64,
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

/// A path with something behind its name.
fn beside(data: &Path, suffix: &str) -> PathBuf {
    let mut name = data.file_name().unwrap_or_default().to_owned();
    name.push(suffix);
    data.with_file_name(name)
}

/// Moves the directory aside, in place of one that was moved before.
fn move_aside(data: &Path) -> Result<()> {
    let former = beside(data, ".former");
    let moved = match fs::remove_dir_all(&former) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => fs::rename(data, &former),
    };
    moved.map_err(|source| CommandError::Io {
        what: "moving the data directory aside, which has to be copied anew",
        source,
    })?;
    notice(format_args!(
        "{} is {} now, and is copied anew",
        data.display(),
        former.display()
    ));
    Ok(())
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
        let data = &options.data;
        let marked = data.join(COPY_ANEW);
        if marked.exists() && directory_state(data)?.standby {
            move_aside(data)?;
        }
        let _ = fs::remove_file(marked);
        let (role, closed) = if copy_is_wanted(data)? || rewind_is_unfinished(data) {
            (Role::Absent, None)
        } else {
            let state = directory_state(data)?;
            let is_standby = state.standby || state.is_new_copy;
            let end = match is_standby {
                true => 0,
                false => DirectoryLog::open(data)?.end().0,
            };
            let closed = Closed {
                database: state.system_identifier,
                timeline: state.timeline,
                end,
            };
            let role = if is_standby { Role::Starting } else { Role::Former };
            (role, Some(closed))
        };
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

    /// The server has ended all sessions, and closed the engine if it was in order.
    pub(crate) fn server_has_ended(&self) {
        self.state().stopped = true;
    }

    /// Nothing that a primary says leaves any more, unless the node ends in order.
    pub(crate) fn answer_until_the_end(&self, ended: &Ended) {
        let in_order = matches!(ended, Ended::Asked | Ended::HandedOver | Ended::CopyAnew);
        if !in_order {
            self.options.deadline.set_ns(0);
        }
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
                    if let Some(mut following) = self.state().following.take() {
                        following.stop();
                    }
                    return;
                }
            }
        }
    }

    /// An error ends the node.
    fn note(&self, outcome: Result<()>) {
        if let Err(error) = outcome {
            let mut state = self.state();
            state.role = Role::Failed;
            state.failure = Some(error.to_string());
        }
    }

    /// The engine is open: clients are served.
    fn opened(&self, server: &Server, engine: &Arc<Engine>, role: Role) {
        notice(format_args!("{}", crate::serve::recovery_line(engine)));
        let on_hang_up = &self.options.on_hang_up;
        on_hang_up.reload_with(&self.options.config_options, engine, |config, take| {
            config.synchronous_standby_names.clear();
            take(config)
        });
        server.ready(Arc::clone(engine));
        let mut state = self.state();
        (state.role, state.engine) = (role, Some(Arc::clone(engine)));
    }

    fn become_primary(&self, server: &Server, term: u64, initialises: bool) -> Result<()> {
        let data = &self.options.data;
        // It has what it has.
        let _ = fs::remove_file(data.join(COPY_ANEW));
        let (engine, following) = {
            let mut state = self.state();
            state.role = Role::Starting;
            state.follows = None;
            (state.engine.clone(), state.following.take())
        };
        let Some(engine) = engine else {
            // A copy of the node that led before may have begun meanwhile.
            if !initialises && copy_is_wanted(data)? {
                let problem = format!(
                    "{} is to lead, and {} has no database",
                    self.options.name,
                    data.display()
                );
                return Err(CommandError::Usage(problem));
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
        let data = &self.options.data;
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
            if state.follows == followed && state.following.is_some() {
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
        let following = self.receive(&engine, conninfo, keeps_log)?;
        let mut state = self.state();
        (state.following, state.follows) = (Some(following), followed);
        Ok(())
    }

    /// Makes the directory one that can follow the server. The connection makes that one keep its log.
    fn fit_directory(&self, conninfo: &ConnInfo) -> Result<Client> {
        let (data, config) = (&self.options.data, &self.options.config);
        let connect = || {
            let patience = config.wal_receiver_timeout.duration();
            Client::connect(conninfo, patience, &self.options.stop)
        };
        let mut client = connect()?;
        if !copy_is_wanted(data)? {
            let Some(parted) = self.parted_from(&mut client)? else {
                return Ok(client);
            };
            // No server's any more: it leads no cluster.
            {
                let mut state = self.state();
                (state.role, state.closed) = (Role::Starting, None);
            }
            client = connect()?;
            if parted == Parted::Rewindable && self.rewind(client)? {
                return Ok(connect()?);
            }
            move_aside(data)?;
            client = connect()?;
        }
        notice(format_args!(
            "copying {} into {}",
            client.address(),
            data.display()
        ));
        base_backup::fetch(&mut client, data, config.fsync, |_| ())?;
        Ok(client)
    }

    /// The reason for which the directory's database cannot follow the server as it is, if there is one.
    fn parted_from(&self, client: &mut Client) -> Result<Option<Parted>> {
        let data = &self.options.data;
        if rewind_is_unfinished(data) {
            return Ok(Some(Parted::Rewindable));
        }
        let state = directory_state(data)?;
        if state.standby || state.is_new_copy {
            return Ok(None);
        }
        let (error, parted) = match FormerPrimary::open(data)?.can_follow(client) {
            Ok(()) => return Ok(None),
            Err(error @ ReceiverError::Diverged { .. }) => (error, Parted::Rewindable),
            Err(error @ ReceiverError::LogRemoved { .. }) => (error, Parted::LogRemoved),
            Err(error) => return Err(error.into()),
        };
        notice(format_args!("{error}"));
        Ok(Some(parted))
    }

    /// Rewinds the directory to the server; `false` if it can never be rewound to this one.
    fn rewind(&self, client: Client) -> Result<bool> {
        let data = &self.options.data;
        let request = RewindRequest {
            dir: data.clone(),
            fsync: self.options.config.fsync,
            dry_run: false,
            slot: None,
        };
        let outcome = rewind(
            || Ok(client),
            &request,
            |event| {
                if let RewindEvent::Parts(fork) = event {
                    notice(format_args!("rewinding {} to {fork}", data.display()));
                }
            },
        );
        match outcome {
            Ok(RewindOutcome::Rewound(summary)) => {
                notice(format_args!(
                    "rewound {}: {} of {} pages were fetched; log from {} to {} that only it has is given up",
                    data.display(),
                    summary.pages,
                    summary.pages_total,
                    summary.fork,
                    summary.own_end
                ));
                Ok(true)
            }
            Ok(_) => Ok(true),
            Err(
                error @ (ReceiverError::Diverged { .. }
                | ReceiverError::Storage(StorageError::NotRewindable { .. })),
            ) => {
                notice(format_args!("{error}"));
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn receive(
        &self,
        engine: &Arc<Engine>,
        conninfo: ConnInfo,
        keeps_log: Option<Client>,
    ) -> Result<Following> {
        let config = &self.options.config;
        let options = ReceiverOptions {
            conninfo,
            timeout: config.wal_receiver_timeout.duration(),
            stream: StreamOptions {
                slot: None,
                status_interval: config.wal_receiver_status_interval.duration(),
                feedback: config.hot_standby_feedback,
            },
            create_slot: false,
        };
        let marked = self.options.data.join(COPY_ANEW);
        let following = Following::start(
            Arc::clone(engine),
            options,
            keeps_log,
            Promotions::ByOwner,
            move |event| {
                notice(format_args!("{event}"));
                if wants_copy(event) {
                    // The loop finds the file, and has the process begin anew.
                    let _ = fs::write(&marked, event.to_string());
                }
            },
        )?;
        Ok(following)
    }
}

/// True if the standby cannot go on with the log that it has.
fn wants_copy(event: &FollowingEvent<'_>) -> bool {
    matches!(
        event,
        FollowingEvent::Receiver(ReceiverEvent::Refused(
            ReceiverError::Diverged { .. }
                | ReceiverError::Unlinked { .. }
                | ReceiverError::LogRemoved { .. }
                | ReceiverError::LogBeginsLater { .. }
        ))
    )
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
        self.options.data.join(COPY_ANEW).exists()
    }

    fn failure(&self) -> Option<String> {
        self.state().failure.clone()
    }
}
