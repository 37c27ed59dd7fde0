//! The files that a configuration is read from, in layers: later ones count more.
//!
//! | layer | file |
//! | --- | --- |
//! | 1 | none: each key has a default |
//! | 2 | the configuration file, which an administrator writes |
//! | 3 | [`AUTO_FILE`] in the data directory, which ALTER SYSTEM writes |
//!
//! Layers 2 and 3 are put together key by key before anything is checked: a key of `[mechanisms]` counts by itself. What the
//! command line says is above all layers, and is put on by the program.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize as _;
use toml::Table;
use toml::de::{DeTable, DeValue};

use super::unknown_keys::readable;
use super::{Config, file_error};
use clearway_sql::error::EngineError;

/// The file in a data directory that ALTER SYSTEM writes.
pub const AUTO_FILE: &str = "clearway.auto.toml";

/// The place of a key's value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// A line of a file, from 1.
    File {
        /// The file.
        file: Arc<Path>,
        /// The line.
        line: usize,
    },
    /// The command line.
    CommandLine,
}

/// The places of the values of a configuration, by key; a key that is not there has its default. A switch is
/// `mechanisms.NAME`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origins {
    by_key: BTreeMap<String, Origin>,
    file: Option<Arc<Path>>,
    auto: Option<Arc<Path>>,
}

impl Origins {
    /// The place of a key's value; `None`: it has its default.
    pub fn of(&self, key: &str) -> Option<&Origin> {
        let whole = key.starts_with("mechanisms.").then_some("mechanisms.preset");
        // A switch that nothing names comes from the preset, if one is chosen.
        self.by_key.get(key).or_else(|| self.by_key.get(whole?))
    }

    /// The configuration file, if one was read (layer 2).
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// The files that were read; one that comes later counts more.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        [&self.file, &self.auto].into_iter().flatten().map(AsRef::as_ref)
    }

    /// The value of this key is the command line's.
    pub fn set_by_command_line(&mut self, key: &str) {
        self.by_key.insert(key.to_owned(), Origin::CommandLine);
    }
}

/// A key of a file: `mechanisms.NAME` for a switch.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FileKey {
    pub(crate) name: String,
    /// From 1.
    pub(crate) line: usize,
    pub(crate) value: String,
}

/// The keys of a file's text in the order of their lines; none if it is no TOML.
pub(crate) fn keys_of(text: &str) -> Vec<FileKey> {
    let Ok(table) = DeTable::parse(text) else {
        return Vec::new();
    };
    let line_of = |start: usize| {
        text.as_bytes()[..start]
            .iter()
            .filter(|byte| **byte == b'\n')
            .count()
            + 1
    };
    let shown = |value: &DeValue<'_>, span: std::ops::Range<usize>| match value.as_str() {
        Some(value) => value.to_owned(),
        None => text[span].to_owned(),
    };
    let mut keys = Vec::new();
    for (name, value) in table.get_ref() {
        let line = line_of(name.span().start);
        match value.get_ref() {
            DeValue::Table(switches) => keys.extend(switches.iter().map(|(switch, value)| FileKey {
                name: format!("{}.{}", name.get_ref(), switch.get_ref()),
                line: line_of(switch.span().start),
                value: shown(value.get_ref(), value.span()),
            })),
            single => keys.push(FileKey {
                name: name.get_ref().to_string(),
                line,
                value: shown(single, value.span()),
            }),
        }
    }
    keys.sort_by_key(|key| key.line);
    keys
}

/// Puts the values of `above` over those of `below`.
fn put_over(below: &mut Table, above: Table) {
    for (key, value) in above {
        match (below.get_mut(&key), value) {
            (Some(toml::Value::Table(old)), toml::Value::Table(new)) => old.extend(new),
            (_, value) => {
                below.insert(key, value);
            }
        }
    }
}

/// A key's value in a table of a configuration; `mechanisms.NAME` for a switch.
pub(crate) fn key_in<'a>(table: &'a Table, key: &str) -> Option<&'a toml::Value> {
    match key.split_once('.') {
        Some((group, name)) => table.get(group)?.as_table()?.get(name),
        None => table.get(key),
    }
}

/// Sets a key's value in a table of a configuration, or removes it.
pub(crate) fn set_key_in(table: &mut Table, key: &str, value: Option<toml::Value>) {
    let (group, name) = match key.split_once('.') {
        Some((group, name)) => (Some(group), name),
        None => (None, key),
    };
    let within = match group {
        Some(group) => {
            let empty = || toml::Value::Table(Table::new());
            match table.entry(group).or_insert_with(empty).as_table_mut() {
                Some(within) => within,
                None => return,
            }
        }
        None => &mut *table,
    };
    match value {
        Some(value) => {
            within.insert(name.to_owned(), value);
        }
        None => {
            within.remove(name);
        }
    }
    if let Some(group) = group
        && table
            .get(group)
            .and_then(toml::Value::as_table)
            .is_some_and(Table::is_empty)
    {
        table.remove(group);
    }
}

/// The text of a file; `None` if there is none.
pub(crate) fn text_of(path: &Path) -> Result<Option<String>, EngineError> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            Ok(None)
        }
        Err(error) => Err(file_error(format!(
            "could not read configuration file \"{}\": {error}",
            path.display()
        ))),
    }
}

/// A file's text as a table, each key and each value of which can be one of a configuration.
fn table_of(path: &Path, text: &str) -> Result<Table, EngineError> {
    // As a configuration first: its errors show the line.
    let fault = match toml::from_str::<Config>(text) {
        Ok(_) => match toml::from_str(text) {
            Ok(table) => return Ok(table),
            Err(error) => error,
        },
        Err(error) => error,
    };
    Err(in_file(path, &readable(&fault)))
}

/// An error with the name of the file that it is about.
pub(super) fn in_file(path: &Path, error: &EngineError) -> EngineError {
    let text = format!(
        "in configuration file \"{}\": {}",
        path.display(),
        error.message()
    );
    let with_path = EngineError::new(error.sqlstate(), text);
    match error.hint() {
        Some(hint) => with_path.with_hint(hint),
        None => with_path,
    }
}

/// The configuration that a table says, checked.
pub(crate) fn from_table(table: Table) -> Result<Config, EngineError> {
    let config = Config::deserialize(toml::Value::Table(table)).map_err(|error| readable(&error))?;
    config.check()?;
    Ok(config)
}

impl Config {
    /// Reads the configuration file, and what ALTER SYSTEM has written into the data directory. That file may be missing.
    pub fn from_files(file: Option<&Path>, data: Option<&Path>) -> Result<Config, EngineError> {
        let mut whole = Table::new();
        let mut origins = Origins::default();
        let auto = data.map(|data| data.join(AUTO_FILE));
        let layers: [(Option<PathBuf>, bool); 2] = [(file.map(Path::to_owned), false), (auto, true)];
        for (path, is_auto) in layers {
            let Some(path) = path else { continue };
            let Some(text) = text_of(&path)? else {
                if !is_auto {
                    let missing = io::Error::from(io::ErrorKind::NotFound);
                    return Err(file_error(format!(
                        "could not read configuration file \"{}\": {missing}",
                        path.display()
                    )));
                }
                continue;
            };
            put_over(&mut whole, table_of(&path, &text)?);
            let path: Arc<Path> = std::path::absolute(&path).unwrap_or(path).into();
            for key in keys_of(&text) {
                let file = Arc::clone(&path);
                origins
                    .by_key
                    .insert(key.name, Origin::File { file, line: key.line });
            }
            let layer = if is_auto {
                &mut origins.auto
            } else {
                &mut origins.file
            };
            *layer = Some(path);
        }
        let mut config = from_table(whole).map_err(|error| match (&origins.file, &origins.auto) {
            (Some(only), None) | (None, Some(only)) => in_file(only, &error),
            _ => error,
        })?;
        config.origins = origins;
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ByteSize;

    #[test]
    fn the_file_of_alter_system_counts_more_key_by_key() {
        let place = tempfile::tempdir().unwrap();
        let (file, data) = (place.path().join("a.toml"), place.path().join("data"));
        std::fs::create_dir(&data).unwrap();
        std::fs::write(
            &file,
            "# ours\nwork_mem = \"8MB\"\nmax_connections = 20\n\n[mechanisms]\npreset = \"classic\"\nsnapshot = \"scan\"\n",
        )
        .unwrap();
        let below = Config::from_files(Some(&file), Some(&data)).unwrap();
        assert_eq!((below.work_mem, below.max_connections), (ByteSize::mib(8), 20));
        let auto = data.join(AUTO_FILE);
        std::fs::write(
            &auto,
            "work_mem = \"16MB\"\n[mechanisms]\nlwlock = \"single-cas\"\n",
        )
        .unwrap();
        let config = Config::from_files(Some(&file), Some(&data)).unwrap();
        assert_eq!((config.work_mem, config.max_connections), (ByteSize::mib(16), 20));
        let mut expected = crate::Mechanisms::CLASSIC;
        expected.set("lwlock=single-cas").unwrap();
        assert_eq!(config.mechanisms, expected);
        let place_of = |key| match config.origins.of(key) {
            Some(Origin::File { file, line }) => Some((file.to_path_buf(), *line)),
            _ => None,
        };
        assert_eq!(place_of("work_mem"), Some((auto.clone(), 1)));
        assert_eq!(place_of("max_connections"), Some((file.clone(), 3)));
        assert_eq!(place_of("mechanisms.lwlock"), Some((auto.clone(), 3)));
        assert_eq!(place_of("mechanisms.snapshot"), Some((file.clone(), 7)));
        assert_eq!(place_of("mechanisms.proc_clear"), Some((file.clone(), 6)));
        assert_eq!(place_of("shared_buffers"), None);
        assert_eq!(config.origins.file(), Some(&*file));
        assert_eq!(config.origins.files().collect::<Vec<_>>(), [&*file, &*auto]);
    }

    #[test]
    fn a_fault_is_told_with_its_file() {
        let place = tempfile::tempdir().unwrap();
        let auto = place.path().join(AUTO_FILE);
        for text in [
            "work_mem = \"8 parsecs\"",
            "wrk_mem = \"8MB\"",
            "work_mem",
            "max_connections = 0",
        ] {
            std::fs::write(&auto, text).unwrap();
            let error = Config::from_files(None, Some(place.path())).unwrap_err();
            assert!(error.message().contains(AUTO_FILE), "{error}");
        }
        let missing = place.path().join("missing.toml");
        assert!(Config::from_files(Some(&missing), None).is_err());
        assert!(Config::from_files(None, Some(&missing)).is_ok());
    }

    #[test]
    fn keys_are_set_and_removed_in_a_table() {
        let mut table = Table::new();
        set_key_in(&mut table, "work_mem", Some("8MB".into()));
        set_key_in(&mut table, "mechanisms.lwlock", Some("queued".into()));
        assert_eq!(
            key_in(&table, "mechanisms.lwlock").unwrap().as_str(),
            Some("queued")
        );
        set_key_in(&mut table, "mechanisms.lwlock", None);
        assert_eq!(toml::to_string(&table).unwrap(), "work_mem = \"8MB\"\n");
        set_key_in(&mut table, "work_mem", None);
        assert!(table.is_empty());
    }
}
