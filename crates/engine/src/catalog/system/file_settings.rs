//! `pg_file_settings`: what the configuration's files say now, and what a reload would make of it.

use super::Sources;
use super::rows::{NULL, Rows, boolean, int4, text};
use crate::config::Config;
use crate::config::files::{AUTO_FILE, from_table, key_in, keys_of, set_key_in, text_of};
use crate::config::session_settings::setting_of_key;
use crate::config::values::{differing, is_changeable};
use clearway_sql::value::Value;
use std::path::{Path, PathBuf};
use toml::Table;

/// PostgreSQL's words for a value that waits for a restart.
const WAITS: &str = "setting could not be applied";

/// A key in a file.
struct Written {
    file: PathBuf,
    line: Option<usize>,
    name: Option<String>,
    value: Option<String>,
    fault: Option<String>,
}

/// The fault of one key by itself.
fn fault_of(table: &Table, key: &str) -> Option<String> {
    let mut alone = Table::new();
    set_key_in(&mut alone, key, key_in(table, key).cloned());
    let error = from_table(alone).err()?;
    error.message().lines().last().map(str::to_owned)
}

/// Reads the keys of a file, in the order of its lines; one fault if it is no TOML.
fn read(file: &Path, written: &mut Vec<Written>) {
    let fault = |told: String| Written {
        file: file.to_owned(),
        line: None,
        name: None,
        value: None,
        fault: Some(told),
    };
    let content = match text_of(file) {
        Ok(None) => return,
        Ok(Some(content)) => content,
        Err(error) => return written.push(fault(error.message().to_owned())),
    };
    match content.parse::<Table>() {
        Err(error) => written.push(fault(error.to_string())),
        Ok(table) => written.extend(keys_of(&content).into_iter().map(|key| Written {
            file: file.to_owned(),
            line: Some(key.line),
            fault: fault_of(&table, &key.name),
            name: Some(key.name),
            value: Some(key.value),
        })),
    }
}

/// `pg_file_settings`
pub(super) fn settings(sources: &Sources<'_>, rows: &mut Rows) {
    let in_force = (sources.in_force)();
    let data = sources.storage.dir();
    let auto = data.join(AUTO_FILE);
    // As pg_settings shows it.
    let auto = std::path::absolute(&auto).unwrap_or(auto);
    let file = in_force.config.origins.file();
    let mut written = Vec::new();
    for file in file.into_iter().chain([&*auto]) {
        read(file, &mut written);
    }
    let fresh = Config::from_files(file, Some(data));
    let waiting = match &fresh {
        Ok(fresh) => differing(&in_force.config, fresh),
        Err(_) => Vec::new(),
    };
    for (place, of) in written.iter().enumerate() {
        let is_last = written[place + 1..].iter().all(|later| later.name != of.name);
        let waits = of
            .name
            .as_ref()
            .is_some_and(|name| is_last && waiting.contains(name) && !is_changeable(name));
        let fault = of.fault.as_deref().or(waits.then_some(WAITS));
        let number = |number: usize| int4(i32::try_from(number).unwrap_or(i32::MAX));
        let optional = |value: &Option<String>| value.as_deref().map_or(NULL, text);
        rows.push([
            ("sourcefile", Value::text(of.file.display().to_string())),
            ("sourceline", of.line.map_or(NULL, number)),
            ("seqno", number(place + 1)),
            (
                "name",
                of.name
                    .as_deref()
                    .map_or(NULL, |name| text(setting_of_key(name).unwrap_or(name))),
            ),
            ("setting", optional(&of.value)),
            ("applied", boolean(is_last && fault.is_none() && fresh.is_ok())),
            ("error", fault.map_or(NULL, text)),
        ]);
    }
}
