//! `clearway init`: a new data directory whose superuser has a name, and a password.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use clap::Args;
use clearway_engine::output::Discard;
use clearway_engine::{Engine, SessionInfo};

use crate::error::{CommandError, Result};
use crate::options::{ConfigOptions, keep_private};
use crate::output::notice;

/// Make a data directory with a superuser of your choice
///
/// The directory must be missing or empty. With a password, all connections need one (pg_hba.conf in the directory says
/// so, and can say otherwise). Without it, every user of this machine can connect as anyone. `clearway serve` makes a
/// directory too: in it, each role that a client names is a superuser.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    clearway init --data /var/tmp/clearway --username postgres --pwfile password.txt\n  \
    clearway serve --data /var/tmp/clearway\n  \
    psql -h 127.0.0.1 -p 5433 -U postgres postgres")]
pub(crate) struct Arguments {
    /// Data directory
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Name of the superuser
    #[arg(long, value_name = "NAME", default_value = "postgres")]
    username: String,
    /// File whose first line is the superuser's password
    #[arg(long, value_name = "FILE")]
    pwfile: Option<PathBuf>,
    #[command(flatten)]
    config: ConfigOptions,
}

/// The rules of a directory whose superuser has a password.
const RULES: &str = "\
# Who may connect from where, and how: the first line that fits counts.
# TYPE  DATABASE     USER  ADDRESS   METHOD
local   all          all             scram-sha-256
host    all          all   samehost  scram-sha-256
local   replication  all             scram-sha-256
host    replication  all   samehost  scram-sha-256
";

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let data = &arguments.data;
    check_name(&arguments.username)?;
    let password = arguments.pwfile.as_deref().map(first_line).transpose()?;
    let is_free = std::fs::read_dir(data).map_or_else(
        |error| error.kind() == std::io::ErrorKind::NotFound,
        |mut entries| entries.next().is_none(),
    );
    if !is_free {
        let text = format!(
            "{} is not an empty directory: nothing was changed",
            data.display()
        );
        return Err(CommandError::Usage(text));
    }
    let config = arguments.config.load(None)?;
    keep_private(data, config.allow_group_access)?;
    let engine = Engine::open(data, config).map_err(CommandError::database("making", data))?;
    let made = name_superuser(&engine, &arguments.username, password.as_deref());
    let closed = engine.shutdown();
    made.and(closed).map_err(CommandError::database("making", data))?;
    if password.is_some() {
        write_rules(data)?;
    }
    notice(format_args!(
        "made {}; its superuser is \"{}\"{}",
        data.display(),
        arguments.username,
        match password {
            Some(_) => ", and connections need a password",
            None => ", without a password: every user of this machine can connect as anyone",
        }
    ));
    Ok(())
}

/// The first statement about roles gives the superuser the name of the session's user.
fn name_superuser(
    engine: &std::sync::Arc<Engine>,
    name: &str,
    password: Option<&str>,
) -> Result<(), clearway_engine::EngineError> {
    let mut session = engine.session(SessionInfo {
        user: name.to_owned(),
        ..SessionInfo::default()
    })?;
    let sql = match password {
        Some(password) => format!(
            "alter role current_user password '{}'",
            password.replace('\'', "''")
        ),
        None => "alter role current_user login".to_owned(),
    };
    session.execute_simple(&sql, &mut Discard::default())
}

fn check_name(name: &str) -> Result<()> {
    let refusal = match name {
        "" => "the superuser needs a name".to_owned(),
        "public" | "none" => format!("the role name \"{name}\" is reserved"),
        name if name.starts_with("pg_") => "role names that start with \"pg_\" are reserved".to_owned(),
        _ => return Ok(()),
    };
    Err(CommandError::Usage(refusal))
}

fn first_line(file: &Path) -> Result<String> {
    let text = std::fs::read_to_string(file).map_err(|source| CommandError::Io {
        what: "reading the password's file",
        source,
    })?;
    match text.lines().next() {
        Some(line) if !line.is_empty() => Ok(line.to_owned()),
        _ => Err(CommandError::Usage(format!(
            "{} has no password in its first line",
            file.display()
        ))),
    }
}

fn write_rules(data: &Path) -> Result<()> {
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(data.join("pg_hba.conf"))
        .and_then(|mut file| file.write_all(RULES.as_bytes()).and_then(|()| file.sync_all()));
    written.map_err(|source| CommandError::Io {
        what: "writing pg_hba.conf",
        source,
    })
}
