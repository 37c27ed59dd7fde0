//! The data directory of a node: its role before it is open, and the steps that make it one that can follow a server.
//!
//! | the directory | steps |
//! | --- | --- |
//! | missing, empty, or with a copy that was not finished | copy |
//! | a standby's | none |
//! | a former primary's, and the other's log goes on from all of it | none |
//! | a former primary's, otherwise | rewind; where that cannot be done, move it aside and copy |
//! | one whose rewind was interrupted | rewind on; where that cannot be done, as above |
//! | a standby's that is marked, since it cannot go on with the log that it has | rewind, if it has log that the server lacks; otherwise as above |
//!
//! A directory is moved aside by renaming it to NAME.former. An earlier one of that name is removed after the rename has
//! worked: until then the directory has the name NAME.former.new, which the next start completes.
//!
//! The files by which the node knows its clients, and that of ALTER SYSTEM ([`NodeDirectory::kept`]), are no part of a copy.
//! They are taken over from the directory that was moved aside, before the copy is opened for the first time.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clearway_engine::Config;
use clearway_engine::config::AUTO_FILE;
use clearway_node::cluster_state::Role;
use clearway_server::StopSignal;
use clearway_server::replication::following::FormerPrimary;
use clearway_server::replication::receiver::client::Client;
use clearway_server::replication::receiver::conninfo::ConnInfo;
use clearway_server::replication::receiver::rewind::{RewindEvent, RewindOutcome, RewindRequest, rewind};
use clearway_server::replication::receiver::{ReceiverError, base_backup};
use clearway_storage::StorageError;
use clearway_storage::directory_log::DirectoryLog;
use clearway_storage::directory_state::directory_state;
use clearway_storage::received_copy::copy_is_wanted;
use clearway_storage::rewind::rewind_is_unfinished;

use crate::error::{CommandError, Result};
use crate::output::notice;

/// The file in a data directory that asks for a rewind or a new copy at the next start.
const COPY_ANEW: &str = "copy.anew";
/// Suffix of a directory that was moved aside.
const FORMER: &str = ".former";
/// Suffix of that directory while an earlier one still has the name with [`FORMER`].
const FORMER_NEW: &str = ".former.new";
/// Suffix of a file while it is copied from the directory that was moved aside.
const UNFINISHED: &str = ".new";
/// Symbolic links that lead to a directory, at most.
const LINKS_MAX: usize = 16;

/// The reason for which a database cannot follow a server as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Parted {
    /// It has log of its own, or its rewind was interrupted.
    Rewindable,
    /// The server no longer has the log that follows.
    LogRemoved,
}

/// The outcome of a rewind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rewinding {
    /// It is a standby's directory of this server now.
    Done,
    /// As far as its own log and the histories tell, the server's log goes on from it.
    NotNeeded,
    /// It can never be rewound to this server.
    Impossible,
}

/// A database that is not open.
#[derive(Debug)]
pub(crate) struct Closed {
    pub(crate) database: u64,
    pub(crate) timeline: u32,
    /// The end of its log; 0 for a standby's, which is opened first.
    pub(crate) end: u64,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct NodeDirectory {
    path: PathBuf,
    fsync: bool,
    /// Names of files below the directory.
    kept: Vec<PathBuf>,
}

/// The path of the directory itself, behind symbolic links: it is renamed, and the links stay. It need not exist.
fn followed(data: &Path) -> PathBuf {
    if let Ok(whole) = fs::canonicalize(data) {
        return whole;
    }
    let mut path = data.to_owned();
    for _ in 0..LINKS_MAX {
        let Ok(target) = fs::read_link(&path) else { break };
        path = path.parent().unwrap_or(Path::new("")).join(target);
    }
    path
}

/// A path with something behind its name.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(suffix);
    path.with_file_name(name)
}

/// The outcome; `Ok` if the error is that nothing has that name.
fn if_there(outcome: io::Result<()>) -> io::Result<()> {
    match outcome {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        outcome => outcome,
    }
}

/// True if what is in the directory is not what a server has written there.
fn is_damage(error: &StorageError) -> bool {
    matches!(
        error,
        StorageError::CorruptPage { .. }
            | StorageError::CorruptFile { .. }
            | StorageError::DamagedRecord { .. }
            | StorageError::UnlinkedRecord { .. }
            | StorageError::MissingFile { .. }
    )
}

fn moving(source: io::Error) -> CommandError {
    CommandError::Io {
        what: "moving the data directory aside, which has to be copied anew",
        source,
    }
}

impl NodeDirectory {
    /// The directory `data`. A move that was interrupted is completed, and a copy behind which a kill came.
    pub(crate) fn new(data: &Path, config: &Config) -> Result<NodeDirectory> {
        let of_server = [
            AUTO_FILE,
            &config.hba_file,
            &config.ssl_cert_file,
            &config.ssl_key_file,
            &config.ssl_ca_file,
        ];
        let is_inside = |name: &&str| !name.is_empty() && Path::new(name).is_relative();
        let directory = NodeDirectory {
            path: followed(data),
            fsync: config.fsync,
            kept: of_server
                .into_iter()
                .filter(is_inside)
                .map(PathBuf::from)
                .collect(),
        };
        directory.complete_move().map_err(moving)?;
        if !directory.wants_copy()? && !rewind_is_unfinished(&directory.path) {
            // Before anything asks for the files about clients.
            directory.complete_copy()?;
        }
        Ok(directory)
    }

    /// Its path, behind symbolic links.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The directory with the files by which the node knows its clients: after a kill between the move and the end of the
    /// copy, the one that was moved aside.
    pub(crate) fn of_clients_files(&self) -> Result<PathBuf> {
        let former = beside(&self.path, FORMER);
        match self.wants_copy()? && former.exists() {
            true => Ok(former),
            false => Ok(self.path.clone()),
        }
    }

    /// Asks for a rewind, or where that cannot be done for a new copy, before the directory is opened the next time.
    pub(crate) fn mark(path: &Path, reason: &str) {
        // Without the mark the receiver stays as it is: it has told why it has ended.
        let _ = fs::write(path.join(COPY_ANEW), reason);
    }

    /// Takes [`mark`](Self::mark) back.
    pub(crate) fn unmark(&self) {
        let _ = fs::remove_file(self.path.join(COPY_ANEW));
    }

    /// True if it is marked.
    pub(crate) fn is_to_be_copied_anew(&self) -> bool {
        self.path.join(COPY_ANEW).exists()
    }

    /// True if there is no database in it.
    pub(crate) fn wants_copy(&self) -> Result<bool> {
        Ok(copy_is_wanted(&self.path)?)
    }

    /// Its role, and its database. A standby's is `Starting`: it is opened before it is told of. One that has to be rewound
    /// or copied is `Absent`, and has a database all the same: it makes no first one.
    pub(crate) fn look(&self) -> Result<(Role, Option<Closed>)> {
        if self.wants_copy()? {
            return Ok((Role::Absent, None));
        }
        let state = directory_state(&self.path)?;
        let unfit = Closed {
            database: state.system_identifier,
            timeline: 0,
            end: 0,
        };
        if rewind_is_unfinished(&self.path) {
            return Ok((Role::Absent, Some(unfit)));
        }
        if self.is_to_be_copied_anew() {
            if state.standby {
                return Ok((Role::Absent, Some(unfit)));
            }
            // It was promoted since.
            self.unmark();
        }
        let is_standby = state.standby || state.is_new_copy;
        let end = match is_standby {
            true => 0,
            false => DirectoryLog::open(&self.path)?.end().0,
        };
        let closed = Closed {
            database: state.system_identifier,
            timeline: state.timeline,
            end,
        };
        let role = if is_standby { Role::Starting } else { Role::Former };
        Ok((role, Some(closed)))
    }

    /// Makes it one that can follow the server. The connection makes that one keep its log. `begin` is called before
    /// anything is changed.
    pub(crate) fn fit(
        &self,
        conninfo: &ConnInfo,
        config: &Config,
        stop: &StopSignal,
        begin: impl FnOnce(),
    ) -> Result<Client> {
        let connect = || Client::connect(conninfo, config.wal_receiver_timeout.duration(), stop);
        let mut client = connect()?;
        if self.wants_copy()? {
            begin();
        } else if self.is_to_be_copied_anew() {
            begin();
            match self.rewind(client) {
                Ok(Rewinding::Done) => {
                    self.unmark();
                    return Ok(connect()?);
                }
                // A log that only seems to go on, as its histories tell, was refused as a stream.
                Ok(Rewinding::NotNeeded | Rewinding::Impossible) => {}
                // Its own log cannot be read. It is kept as the directory of before.
                Err(CommandError::Receiver(ReceiverError::Storage(error))) if is_damage(&error) => {
                    notice(format_args!("{error}"));
                }
                Err(error) => return Err(error),
            }
            client = connect()?;
            self.move_aside()?;
        } else {
            let Some(parted) = self.parted_from(&mut client)? else {
                return Ok(client);
            };
            client = connect()?;
            begin();
            if parted == Parted::Rewindable && self.rewind(client)? != Rewinding::Impossible {
                return Ok(connect()?);
            }
            client = connect()?;
            self.move_aside()?;
        }
        notice(format_args!(
            "copying {} into {}",
            client.address(),
            self.path.display()
        ));
        base_backup::fetch(&mut client, &self.path, self.fsync, |_| ())?;
        Ok(client)
    }

    /// The reason for which the database cannot follow the server as it is, if there is one.
    fn parted_from(&self, client: &mut Client) -> Result<Option<Parted>> {
        if rewind_is_unfinished(&self.path) {
            return Ok(Some(Parted::Rewindable));
        }
        let state = directory_state(&self.path)?;
        if state.standby || state.is_new_copy {
            return Ok(None);
        }
        let (error, parted) = match FormerPrimary::open(&self.path)?.can_follow(client) {
            Ok(()) => return Ok(None),
            // The server leads again, on the timeline that it had before this one was promoted.
            Err(error @ (ReceiverError::Diverged { .. } | ReceiverError::EarlierTimeline { .. })) => {
                (error, Parted::Rewindable)
            }
            Err(error) if error.needs_copy() => (error, Parted::LogRemoved),
            Err(error) => return Err(error.into()),
        };
        notice(format_args!("{error}"));
        Ok(Some(parted))
    }

    /// Rewinds it to the server.
    fn rewind(&self, client: Client) -> Result<Rewinding> {
        let request = RewindRequest {
            dir: self.path.clone(),
            fsync: self.fsync,
            dry_run: false,
            slot: None,
        };
        let outcome = rewind(
            || Ok(client),
            &request,
            |event| {
                if let RewindEvent::Parts(fork) = event {
                    notice(format_args!("rewinding {} to {fork}", self.path.display()));
                }
            },
        );
        match outcome {
            Ok(RewindOutcome::Rewound(summary)) => {
                notice(format_args!(
                    "rewound {}: {} of {} pages were fetched; log from {} to {} that only it has is given up",
                    self.path.display(),
                    summary.pages,
                    summary.pages_total,
                    summary.fork,
                    summary.own_end
                ));
                Ok(Rewinding::Done)
            }
            Ok(RewindOutcome::Completed) => Ok(Rewinding::Done),
            Ok(_) => Ok(Rewinding::NotNeeded),
            Err(error)
                if error.needs_copy()
                    || matches!(error, ReceiverError::Storage(StorageError::NotRewindable { .. })) =>
            {
                notice(format_args!("{error}"));
                Ok(Rewinding::Impossible)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Moves the directory aside, in place of one that was moved before.
    fn move_aside(&self) -> Result<()> {
        let moved = fs::rename(&self.path, beside(&self.path, FORMER_NEW));
        moved.and_then(|()| self.complete_move()).map_err(moving)?;
        notice(format_args!(
            "{} is {} now, and is copied anew",
            self.path.display(),
            beside(&self.path, FORMER).display()
        ));
        Ok(())
    }

    /// Gives a directory that has left its place its name.
    fn complete_move(&self) -> io::Result<()> {
        let (moved, former) = (beside(&self.path, FORMER_NEW), beside(&self.path, FORMER));
        if !moved.exists() {
            return Ok(());
        }
        if_there(fs::remove_dir_all(&former))?;
        fs::rename(&moved, &former)
    }

    /// Takes over what a copy does not have, if no server has opened it yet.
    pub(crate) fn complete_copy(&self) -> Result<()> {
        let former = beside(&self.path, FORMER);
        if !directory_state(&self.path)?.is_new_copy || !former.exists() {
            return Ok(());
        }
        for name in &self.kept {
            let (from, to) = (former.join(name), self.path.join(name));
            if from.exists() && !to.exists() {
                self.take_over(&from, &to).map_err(CommandError::io(
                    "taking over the files about clients from the directory that was moved aside",
                ))?;
                notice(format_args!("{} is that of before", to.display()));
            }
        }
        Ok(())
    }

    /// Copies a file with its permissions; under its name it is whole.
    fn take_over(&self, from: &Path, to: &Path) -> io::Result<()> {
        if let Some(parent) = to.parent() {
            fs::create_dir_all(parent)?;
        }
        let unfinished = beside(to, UNFINISHED);
        fs::copy(from, &unfinished)?;
        if self.fsync {
            fs::File::open(&unfinished)?.sync_all()?;
        }
        fs::rename(&unfinished, to)?;
        // The name is durable before the copy is opened, behind which it is not taken over any more.
        match to.parent().filter(|_| self.fsync) {
            Some(parent) => fs::File::open(parent)?.sync_all(),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::thread::JoinHandle;

    use clearway_engine::{Discard, Engine, SessionInfo};
    use clearway_server::{Server, ServerOptions};
    use clearway_storage::{Storage, StorageOptions};

    /// A directory with a database and rules, and its node's.
    fn with_database(data: &Path) -> NodeDirectory {
        let (storage, _) = Storage::open(data, StorageOptions::default()).unwrap();
        storage.shutdown().unwrap();
        fs::write(data.join("pg_hba.conf"), "local all all trust\n").unwrap();
        NodeDirectory::new(data, &Config::default()).unwrap()
    }

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_directory_behind_a_link_is_moved_and_the_link_stays() {
        let place = tempfile::tempdir().unwrap();
        let disk = place.path().join("disk");
        fs::create_dir(&disk).unwrap();
        let link = place.path().join("data");
        std::os::unix::fs::symlink("disk/data", &link).unwrap();
        fs::create_dir(disk.join("data")).unwrap();
        let directory = with_database(&link);
        directory.move_aside().unwrap();
        assert_eq!(names(&disk), ["data.former"]);
        // A start in this state knows where the link leads.
        let directory = NodeDirectory::new(&link, &Config::default()).unwrap();
        assert_eq!(directory.path(), place.path().join("disk/data"));
        assert_eq!(directory.look().unwrap().0, Role::Absent);
        assert_eq!(
            directory.of_clients_files().unwrap(),
            place.path().join("disk/data.former")
        );
        fs::create_dir(directory.path()).unwrap();
        assert!(names(&link).is_empty());
    }

    #[test]
    fn the_former_directory_is_removed_only_after_the_next_one_has_moved() {
        let place = tempfile::tempdir().unwrap();
        let data = place.path().join("data");
        let directory = with_database(&data);
        fs::create_dir(place.path().join("data.former")).unwrap();
        fs::write(place.path().join("data.former/precious"), "").unwrap();
        // A directory that cannot be renamed, as a mount point cannot: it is not there.
        fs::rename(&data, place.path().join("elsewhere")).unwrap();
        assert!(directory.move_aside().is_err());
        assert_eq!(names(&place.path().join("data.former")), ["precious"]);
        fs::rename(place.path().join("elsewhere"), &data).unwrap();
        // A kill behind the first step.
        fs::rename(&data, place.path().join("data.former.new")).unwrap();
        let directory = NodeDirectory::new(&data, &Config::default()).unwrap();
        assert_eq!(names(place.path()), ["data.former"]);
        assert!(place.path().join("data.former/control").exists());
        assert!(directory.wants_copy().unwrap());
    }

    #[test]
    fn a_mark_counts_for_a_standby_and_for_no_primary() {
        let place = tempfile::tempdir().unwrap();
        let data = place.path().join("data");
        let directory = with_database(&data);
        NodeDirectory::mark(directory.path(), "");
        assert!(directory.is_to_be_copied_anew());
        let (role, closed) = directory.look().unwrap();
        assert_eq!((role, closed.unwrap().timeline), (Role::Former, 1));
        assert!(!directory.is_to_be_copied_anew());
    }

    /// A kill behind a copy, before the files about clients were taken over; and a directory that is marked.
    #[test]
    fn a_copy_that_was_not_opened_gets_its_files_before_they_are_asked_for() {
        let place = tempfile::tempdir().unwrap();
        let [alice, bob] = ["alice", "bob"].map(|name| place.path().join(name));
        let first = serve(Engine::open(&alice, config()).unwrap());
        with_database(&bob).move_aside().unwrap();
        let mut client = Client::connect(&first.conninfo, LONG, &first.stop).unwrap();
        base_backup::fetch(&mut client, &bob, false, |_| ()).unwrap();
        assert!(!bob.join("pg_hba.conf").exists());
        let directory = NodeDirectory::new(&bob, &config()).unwrap();
        assert_eq!(directory.of_clients_files().unwrap(), bob);
        assert!(bob.join("pg_hba.conf").exists());
        Engine::open_standby(&bob, config()).unwrap().shutdown().unwrap();
        NodeDirectory::mark(&bob, "");
        let (role, closed) = directory.look().unwrap();
        let database = first.engine.storage().system_identifier();
        assert_eq!((role, closed.unwrap().database), (Role::Absent, database));
        first.end();
    }

    const LONG: std::time::Duration = std::time::Duration::from_secs(60);

    fn config() -> Config {
        Config::from_toml("autovacuum = false\nshared_buffers = \"16MB\"").unwrap()
    }

    /// A server in this process, until it is stopped.
    struct Served {
        engine: Arc<Engine>,
        conninfo: ConnInfo,
        stop: StopSignal,
        thread: JoinHandle<clearway_server::Result<()>>,
    }

    fn serve(engine: Arc<Engine>) -> Served {
        let options = ServerOptions {
            listen: Some("127.0.0.1:0".to_owned()),
            ..ServerOptions::default()
        };
        let server = Server::bind(Arc::clone(&engine), options).unwrap();
        let port = server.local_addr().unwrap().port();
        let stop = StopSignal::new().unwrap();
        let stopped = stop.clone();
        Served {
            engine,
            conninfo: format!("host=127.0.0.1 port={port} sslmode=disable")
                .parse()
                .unwrap(),
            stop,
            thread: std::thread::spawn(move || server.run(&stopped)),
        }
    }

    impl Served {
        fn run(&self, sql: &str) {
            let mut session = self.engine.session(SessionInfo::default()).unwrap();
            session.execute_simple(sql, &mut Discard::default()).unwrap();
        }

        /// A standby's directory with what is there now, which was open.
        fn copy(&self, data: &Path) {
            let mut client = Client::connect(
                &self.conninfo,
                config().wal_receiver_timeout.duration(),
                &self.stop,
            )
            .unwrap();
            base_backup::fetch(&mut client, data, false, |_| ()).unwrap();
            Engine::open_standby(data, config()).unwrap().shutdown().unwrap();
        }

        /// Makes `data` a directory that can follow it.
        fn fit(&self, data: &Path) -> NodeDirectory {
            let directory = NodeDirectory::new(data, &config()).unwrap();
            directory
                .fit(&self.conninfo, &config(), &self.stop, || ())
                .unwrap();
            directory
        }

        fn end(self) {
            self.stop.stop();
            self.thread.join().unwrap().unwrap();
        }
    }

    fn rows(data: &Path) -> u64 {
        let engine = Engine::open_read_only(data, config()).unwrap();
        let report = engine.check_with(&mut |_| {}).unwrap();
        assert!(report.problems.is_empty(), "{:?}", report.problems);
        report.rows
    }

    /// Carol has received more of Alice's log than Bob, who leads now. Dave has all of Bob's log, and was marked for another
    /// reason, which is not known here.
    #[test]
    fn a_standby_that_has_more_log_is_rewound_and_another_that_is_marked_is_copied() {
        let place = tempfile::tempdir().unwrap();
        let [alice, bob, carol, dave] = ["alice", "bob", "carol", "dave"].map(|name| place.path().join(name));
        let first = serve(Engine::open(&alice, config()).unwrap());
        first.run("create table notes (id int primary key)");
        first.run("insert into notes select generate_series(1, 1000)");
        first.copy(&bob);
        first.run("insert into notes select generate_series(2001, 2100)");
        first.copy(&carol);
        first.end();
        let engine = Engine::open_standby(&bob, config()).unwrap();
        engine.promote("a test").unwrap();
        let second = serve(engine);
        second.copy(&dave);
        for data in [&carol, &dave] {
            NodeDirectory::mark(data, "");
            let directory = second.fit(data);
            assert!(directory_state(data).unwrap().standby && !directory.is_to_be_copied_anew());
        }
        let expected = rows(&dave);
        assert_eq!(rows(&carol), expected);
        second.end();
        assert_eq!(
            names(place.path()),
            ["alice", "bob", "carol", "dave", "dave.former"]
        );
    }
}
