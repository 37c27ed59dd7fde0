//! `clearway man`: manual pages, one for the program and one for each command.

use std::path::PathBuf;

use clap::{Args, Command};

use crate::error::{CommandError, Result};
use crate::output::notice;

/// Write manual pages: clearway.1, and clearway-COMMAND.1 for each command
///
/// They say what `--help` says. The directory is made if it is missing; pages that are there are replaced.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    clearway man --out /usr/local/share/man/man1     then: man clearway-serve\n  \
    clearway man --out pages && man pages/clearway-serve.1")]
pub(crate) struct Arguments {
    /// Directory for the pages
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

/// `command` is that of the whole program.
pub(crate) fn run(arguments: &Arguments, command: Command) -> Result<()> {
    let out = &arguments.out;
    std::fs::create_dir_all(out)
        .and_then(|()| clap_mangen::generate_to(command, out))
        .map_err(|source| CommandError::NotWritten {
            path: out.clone(),
            source,
        })?;
    notice(format_args!("wrote manual pages into {}", out.display()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory;

    use super::*;

    /// Each command that `--help` shows has a page with its options, and its examples.
    #[test]
    fn each_command_has_a_page() {
        let directory = tempfile::tempdir().unwrap();
        let out = directory.path().join("man1");
        run(&Arguments { out: out.clone() }, crate::Arguments::command()).unwrap();
        let names = std::fs::read_dir(&out)
            .unwrap()
            .map(|file| file.unwrap().file_name());
        let names: BTreeSet<String> = names.map(|name| name.into_string().unwrap()).collect();
        let program = crate::Arguments::command();
        for command in program.get_subcommands() {
            let name = format!("clearway-{}.1", command.get_name());
            assert_eq!(names.contains(&name), !command.is_hide_set(), "{name}");
        }
        let page = std::fs::read_to_string(out.join("clearway-serve.1")).unwrap();
        assert!(page.contains("\\-\\-socket\\-dir"), "{page}");
        assert!(page.contains("Examples:"), "{page}");
    }

    #[test]
    fn a_directory_that_cannot_be_made_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let out = file.path().join("man1");
        let error = run(&Arguments { out: out.clone() }, crate::Arguments::command()).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with(&format!("{} cannot be written: ", out.display()))
        );
    }
}
