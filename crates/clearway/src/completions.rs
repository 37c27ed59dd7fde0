//! `clearway completions`: the script by which a shell completes commands and options.

use clap::{Args, Command};
use clap_complete::Shell;

use crate::error::Result;
use crate::output::print;

/// Write the script by which a shell completes commands and options
///
/// It is written to standard output, and goes where the shell looks for it. It belongs to this version: write it again after
/// an upgrade.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    clearway completions bash > /usr/share/bash-completion/completions/clearway\n  \
    clearway completions zsh > /usr/local/share/zsh/site-functions/_clearway\n  \
    clearway completions fish > ~/.config/fish/completions/clearway.fish")]
pub(crate) struct Arguments {
    /// Shell
    shell: Shell,
}

/// `command` is that of the whole program.
pub(crate) fn run(arguments: &Arguments, command: &Command) -> Result<()> {
    print(format_args!("{}", script(arguments.shell, command)))
}

fn script(shell: Shell, command: &Command) -> String {
    // The library would complete hidden commands as well.
    let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
    let mut shown = Command::new("clearway").subcommands(shown.cloned());
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut shown, "clearway", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, ValueEnum as _};

    use super::*;

    #[test]
    fn every_shell_completes_what_help_shows() {
        for shell in Shell::value_variants() {
            let script = script(*shell, &crate::Arguments::command());
            assert!(script.contains("socket-dir"), "{shell}");
            assert!(!script.contains("stub-server"), "{shell}");
        }
    }
}
