//! ALTER SYSTEM: the keys that are written into [`AUTO_FILE`] of the data directory.
//!
//! 1. The key must be one of the configuration, or a setting that sessions can change (`settings.NAME` in the file), and the value
//!    one that it takes beside those in force.
//! 2. The file is read, changed, and written under another name, which is made durable.
//! 3. It gets its name. So a kill leaves the old file or the new one, never a part.
//!
//! Nothing changes before the configuration is read again ([`reload`](super::reload)), or the server is started again. A
//! lock keeps sessions apart that alter at once: each finds what the one before it has written.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::PoisonError;

use toml::{Table, Value};

use crate::config::files::{AUTO_FILE, from_table, key_in, set_key_in, text_of};
use crate::config::session_settings::{key_of_setting, setting_of_key};
use crate::config::unknown_keys::nearest_key;
use crate::config::values::unit_of;
use crate::config::{ByteSize, Config};
use crate::engine::Engine;
use crate::settings::Settings;
use clearway_sql::error::{EngineError, Result, SqlState};

/// The head of the file.
const HEAD: &str = "# Written by ALTER SYSTEM, which also changes it. Its values count more than those of the configuration file.\n";

/// The suffix of the file while it is written.
const UNFINISHED: &str = ".new";

/// The table of a configuration.
fn table_of(config: &Config) -> Result<Table> {
    let Ok(Value::Table(table)) = Value::try_from(config) else {
        return Err(EngineError::internal("a configuration is a table"));
    };
    Ok(table)
}

/// The value that a text means for a key whose values are like `like`. A bare number of a key with a unit counts that unit, as
/// `pg_settings` tells it.
fn value_like(key: &str, like: &Value, text: &str) -> Option<Value> {
    let text = text.trim();
    match like {
        Value::Boolean(_) => match text.to_ascii_lowercase().as_str() {
            "on" | "true" | "yes" | "1" => Some(true.into()),
            "off" | "false" | "no" | "0" => Some(false.into()),
            _ => None,
        },
        Value::Integer(_) => text.parse::<i64>().ok().map(Value::from),
        Value::Float(_) => text
            .parse::<f64>()
            .ok()
            .filter(|number| number.is_finite())
            .map(Value::from),
        _ => Some(match (unit_of(key), text.parse::<u64>()) {
            (Some("8kB"), Ok(pages)) => ByteSize::from_bytes(pages.checked_mul(8 << 10)?)
                .to_string()
                .into(),
            (Some(unit), Ok(number)) if number != 0 => format!("{number}{unit}").into(),
            _ => text.into(),
        }),
    }
}

/// The key of what ALTER SYSTEM names: a key of the configuration, or a setting of sessions.
fn key_of(name: &str) -> Cow<'_, str> {
    match Settings::is_for_sessions(name) {
        true => Cow::Owned(key_of_setting(name)),
        false => Cow::Borrowed(name),
    }
}

/// The error of a key that there is not.
fn unknown(name: &str) -> EngineError {
    if Settings::is_known(name) {
        return EngineError::new(
            SqlState::from_code("55P02"),
            format!("parameter \"{name}\" cannot be changed"),
        )
        .with_detail("It is no key of the configuration.");
    }
    let error = EngineError::new(
        SqlState::UNDEFINED_OBJECT,
        format!("unrecognized configuration parameter \"{name}\""),
    );
    match nearest_key(name) {
        Some(near) => error.with_hint(format!("Did you mean {near}?")),
        None => error,
    }
}

fn unwritten(path: &Path, error: &io::Error) -> EngineError {
    let text = format!("could not write file \"{}\": {error}", path.display());
    EngineError::new(SqlState::IO_ERROR, text)
}

/// Writes the file as a whole. The process's umask gives it the mode that the directory's files have.
fn write_whole(path: &Path, text: &str, fsync: bool) -> io::Result<()> {
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(UNFINISHED);
    let mut file = File::create(&unfinished)?;
    file.write_all(text.as_bytes())?;
    if fsync {
        file.sync_all()?;
    }
    fs::rename(&unfinished, path)?;
    match path.parent() {
        Some(directory) if fsync => File::open(directory)?.sync_all(),
        _ => Ok(()),
    }
}

impl Engine {
    /// ALTER SYSTEM SET, with a value; otherwise RESET of one key, or of all.
    pub(crate) fn alter_system(&self, name: Option<&str>, value: Option<&str>) -> Result<()> {
        if !self.reads_configuration_again() {
            return Err(EngineError::new(
                SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                "the program that has opened the database reads no configuration file",
            ));
        }
        let _alone = self.altering.lock().unwrap_or_else(PoisonError::into_inner);
        let path = self.storage().dir().join(AUTO_FILE);
        let mut written = match text_of(&path)? {
            Some(text) => text.parse::<Table>().map_err(|error| {
                let text = format!("could not parse contents of file \"{}\"", path.display());
                EngineError::new(SqlState::CONFIG_FILE_ERROR, text).with_detail(error.to_string())
            })?,
            None => Table::new(),
        };
        match name {
            None => written.clear(),
            Some(name) => {
                let key = key_of(name);
                let name = &*key;
                let value = value.map(|value| self.checked_value(name, value)).transpose()?;
                if value.is_none() && key_in(&written, name).is_none() {
                    self.require_key(name)?;
                }
                set_key_in(&mut written, name, value);
            }
        }
        let text = toml::to_string(&written).map_err(|error| EngineError::internal(error.to_string()))?;
        write_whole(&path, &format!("{HEAD}{text}"), self.config.fsync)
            .map_err(|error| unwritten(&path, &error))
    }

    /// The value like which those of a key are.
    fn require_key(&self, name: &str) -> Result<Value> {
        if name == "data_directory" {
            return Err(EngineError::new(
                SqlState::from_code("55P02"),
                format!("parameter \"{name}\" cannot be changed"),
            ));
        }
        if setting_of_key(name).is_some_and(Settings::is_for_sessions) {
            return Ok(Value::String(String::new()));
        }
        let table = table_of(&Config::default())?;
        match key_in(&table, name) {
            Some(value) if !value.is_table() => Ok(value.clone()),
            _ => Err(unknown(name)),
        }
    }

    /// A value that the key takes.
    fn checked_value(&self, name: &str, text: &str) -> Result<Value> {
        let refused = || {
            let shown = setting_of_key(name).unwrap_or(name);
            EngineError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("invalid value for parameter \"{shown}\": \"{text}\""),
            )
        };
        let like = self.require_key(name)?;
        let value = value_like(name, &like, text).ok_or_else(refused)?;
        let mut table = table_of(&self.in_force().config)?;
        set_key_in(&mut table, name, Some(value.clone()));
        from_table(table).map_err(|error| refused().with_detail(error.message().to_owned()))?;
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::{Arc, Barrier};

    use super::*;
    use crate::{Collected, SessionInfo};
    use clearway_sql::value::text::to_text;

    fn opened(directory: &Path) -> Arc<Engine> {
        let engine = Engine::open(directory, Config::from_files(None, Some(directory)).unwrap()).unwrap();
        let (weak, directory) = (Arc::downgrade(&engine), directory.to_owned());
        engine.set_reload(Arc::new(move || {
            let config = Config::from_files(None, Some(&directory));
            config.is_ok_and(|config| {
                weak.upgrade()
                    .is_some_and(|engine| engine.reload(&config).is_ok())
            })
        }));
        engine
    }

    fn run(engine: &Arc<Engine>, sql: &str) -> Result<String> {
        let mut session = engine.session(SessionInfo::default())?;
        let mut out = Collected::default();
        session.execute_simple(sql, &mut out)?;
        let shown = |row: &Vec<clearway_sql::value::Value>| {
            let values = row.iter().map(|value| to_text(value).unwrap_or_default());
            values.collect::<Vec<_>>().join("|")
        };
        Ok(out.rows.iter().map(shown).collect::<Vec<_>>().join("\n"))
    }

    #[test]
    fn a_value_is_written_checked_and_in_force_after_a_reload_or_a_start() {
        let place = tempfile::tempdir().unwrap();
        let engine = opened(place.path());
        run(&engine, "alter system set work_mem = '9MB'").unwrap();
        run(&engine, "alter system set max_connections to 33").unwrap();
        run(&engine, "alter system set autovacuum_naptime = 7").unwrap();
        run(&engine, "alter system set shared_buffers = 2048").unwrap();
        run(&engine, "alter system set mechanisms.lwlock = queued").unwrap();
        assert_eq!(run(&engine, "show work_mem").unwrap(), "4MB");
        run(&engine, "select pg_reload_conf()").unwrap();
        assert_eq!(run(&engine, "show work_mem").unwrap(), "9MB");
        let waiting = "select name from pg_settings where pending_restart order by name";
        let keys = "autovacuum_naptime\nmax_connections\nmechanisms.lwlock\nshared_buffers";
        assert_eq!(run(&engine, waiting).unwrap(), keys);
        engine.shutdown().unwrap();
        drop(engine);
        let engine = opened(place.path());
        let set = "select name, setting, source, sourceline is not null from pg_settings \
                   where sourcefile like '%clearway.auto.toml' order by name";
        assert_eq!(
            run(&engine, set).unwrap(),
            "autovacuum_naptime|7|configuration file|t\nmax_connections|33|configuration file|t\n\
             mechanisms.lwlock|queued|configuration file|t\nshared_buffers|2048|configuration file|t\n\
             work_mem|9216|configuration file|t"
        );
        // A setting of sessions.
        run(&engine, "alter system set lock_timeout = '7s'").unwrap();
        run(&engine, "alter system set enable_seqscan to off").unwrap();
        run(&engine, "select pg_reload_conf()").unwrap();
        assert_eq!(run(&engine, "show lock_timeout").unwrap(), "7s");
        let told = "select name, setting, source, context, sourceline is not null, pending_restart from pg_settings \
                    where name in ('lock_timeout', 'enable_seqscan') order by name";
        assert_eq!(
            run(&engine, told).unwrap(),
            "enable_seqscan|off|configuration file|user|t|f\nlock_timeout|7000|configuration file|user|t|f"
        );
        let written = "select name, setting, applied, error is null from pg_file_settings \
                       where name in ('lock_timeout', 'enable_seqscan') order by name";
        assert_eq!(
            run(&engine, written).unwrap(),
            "enable_seqscan|off|t|t\nlock_timeout|7s|t|t"
        );
        assert_eq!(
            run(
                &engine,
                "select count(*) from pg_settings where name like 'settings.%'"
            )
            .unwrap(),
            "0"
        );
        run(&engine, "alter system reset lock_timeout").unwrap();
        run(&engine, "select pg_reload_conf()").unwrap();
        assert_eq!(run(&engine, "show lock_timeout").unwrap(), "0");
        run(&engine, "alter system reset work_mem").unwrap();
        run(&engine, "alter system reset work_mem").unwrap();
        run(&engine, "select pg_reload_conf()").unwrap();
        assert_eq!(run(&engine, "show work_mem").unwrap(), "4MB");
        run(&engine, "alter system reset all").unwrap();
        let text = fs::read_to_string(place.path().join(AUTO_FILE)).unwrap();
        assert_eq!(text, HEAD);
        engine.shutdown().unwrap();
    }

    /// Sessions that were open before follow, too, and tell their clients.
    #[test]
    fn an_open_session_follows_what_a_reload_takes_away() {
        let place = tempfile::tempdir().unwrap();
        let engine = opened(place.path());
        let mut session = engine.session(SessionInfo::default()).unwrap();
        let mut ask = |sql: &str| {
            let mut out = Collected::default();
            session.execute_simple(sql, &mut out).map(|()| out.parameters)
        };
        for sql in [
            "alter system set statement_timeout = '50ms'",
            "alter system set intervalstyle = 'iso_8601'",
            "select pg_reload_conf()",
        ] {
            run(&engine, sql).unwrap();
        }
        let told = ask("select 1").unwrap();
        assert_eq!(told, [("IntervalStyle".to_owned(), "iso_8601".to_owned())]);
        assert_eq!(
            ask("select pg_sleep(10)").unwrap_err().sqlstate(),
            SqlState::from_code("57014")
        );
        for sql in [
            "alter system reset statement_timeout",
            "alter system reset intervalstyle",
            "select pg_reload_conf()",
        ] {
            run(&engine, sql).unwrap();
        }
        let told = ask("select pg_sleep(0.2)").unwrap();
        assert_eq!(told, [("IntervalStyle".to_owned(), "postgres".to_owned())]);
        assert_eq!(ask("select 1").unwrap(), []);
        engine.shutdown().unwrap();
    }

    #[test]
    fn what_cannot_be_is_refused_and_nothing_is_written() {
        let place = tempfile::tempdir().unwrap();
        let engine = opened(place.path());
        for (sql, code, told) in [
            (
                "alter system set wrk_mem = '8MB'",
                "42704",
                "hint: Did you mean work_mem?",
            ),
            (
                "alter system reset mechanisms.lwlok",
                "42704",
                "hint: Did you mean mechanisms.lwlock?",
            ),
            ("alter system set mechanisms = 'a'", "42704", "mechanisms"),
            (
                "alter system set work_mem = '8 parsecs'",
                "22023",
                "\"work_mem\": \"8 parsecs\"",
            ),
            ("alter system set work_mem = '1kB'", "22023", "64kB"),
            ("alter system set max_connections = 'many'", "22023", "\"many\""),
            ("alter system set max_connections = 0", "22023", "must be 1"),
            ("alter system set autovacuum = 'perhaps'", "22023", "\"perhaps\""),
            (
                "alter system set mechanisms.lwlock = 'fast'",
                "22023",
                "does not exist",
            ),
            (
                "alter system set lock_timeout = 'soon'",
                "22023",
                "\"lock_timeout\": \"soon\"",
            ),
            ("alter system set role = 'joe'", "55P02", "cannot be changed"),
            (
                "alter system set server_version = '16'",
                "55P02",
                "cannot be changed",
            ),
            (
                "begin; alter system set work_mem = '8MB'",
                "25001",
                "ALTER SYSTEM cannot run inside",
            ),
        ] {
            let error = run(&engine, sql).unwrap_err();
            assert_eq!(error.sqlstate().as_str(), code, "{sql}: {error}");
            assert!(error.to_string().contains(told), "{sql}: {error}");
        }
        let mut session = engine.session(SessionInfo::default()).unwrap();
        let mut run_here = |sql: &str| session.execute_simple(sql, &mut Collected::default());
        run_here("create role joe login").unwrap();
        run_here("set role joe").unwrap();
        for (sql, told) in [
            (
                "alter system set work_mem = '8MB'",
                "permission denied to set parameter \"work_mem\"",
            ),
            (
                "alter system reset all",
                "permission denied to perform ALTER SYSTEM RESET ALL",
            ),
        ] {
            let error = run_here(sql).unwrap_err();
            assert_eq!((error.sqlstate().as_str(), error.message()), ("42501", told));
        }
        drop(session);
        assert!(!place.path().join(AUTO_FILE).exists());
        engine.shutdown().unwrap();
    }

    /// `pg_file_settings` lists a key once, by whatever path the directory was opened.
    #[test]
    fn a_key_of_a_directory_with_a_relative_path_is_listed_once() {
        let place = tempfile::tempdir().unwrap();
        let here = std::env::current_dir().unwrap();
        let root: PathBuf = here.components().skip(1).map(|_| "..").collect();
        let relative = root.join(place.path().strip_prefix("/").unwrap());
        let engine = opened(&relative);
        run(&engine, "alter system set work_mem = '9MB'").unwrap();
        run(&engine, "select pg_reload_conf()").unwrap();
        let file = std::path::absolute(relative.join(AUTO_FILE)).unwrap();
        assert_eq!(
            run(&engine, "select sourcefile, name, applied from pg_file_settings").unwrap(),
            format!("{}|work_mem|t", file.display())
        );
        engine.shutdown().unwrap();
    }

    /// Mutation that it should catch (`crates/engine/mutations/alter_system.toml`): the lock is released before the file is
    /// read.
    #[test]
    fn sessions_that_alter_at_once_keep_what_each_has_written() {
        const ROUNDS: u32 = 25;
        let place = tempfile::tempdir().unwrap();
        let engine = opened(place.path());
        let barrier = Barrier::new(2);
        let alter = |key: &str, value: &dyn Fn(u32) -> String| {
            let mut failed = Vec::new();
            for round in 1..=ROUNDS {
                barrier.wait();
                let altered = run(&engine, &format!("alter system set {key} = '{}'", value(round)));
                failed.extend(altered.err());
                // Both have written.
                barrier.wait();
                let text = fs::read_to_string(place.path().join(AUTO_FILE)).unwrap();
                let table = text.parse::<Table>().unwrap();
                if key_in(&table, key) != Some(&Value::String(value(round))) {
                    failed.push(EngineError::internal(format!("{key} of round {round} is lost")));
                }
            }
            failed
        };
        std::thread::scope(|scope| {
            let sessions = [
                scope.spawn(|| alter("work_mem", &|round| format!("{round}MB"))),
                scope.spawn(|| alter("wal_sender_timeout", &|round| format!("{round}s"))),
            ];
            for session in sessions {
                let failed = session.join().unwrap();
                assert!(failed.is_empty(), "{failed:?}");
            }
        });
        engine.shutdown().unwrap();
    }

    #[test]
    fn an_engine_without_a_program_that_reads_files_has_no_alter_system() {
        let place = tempfile::tempdir().unwrap();
        let engine = Engine::open(place.path(), Config::default()).unwrap();
        let error = run(&engine, "alter system set work_mem = '8MB'").unwrap_err();
        assert_eq!(error.sqlstate(), SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE);
        engine.shutdown().unwrap();
    }
}
