//! `clearway rewind`: makes the directory of a former primary one that `clearway standby` opens, by fetching from the new
//! primary what differs (`clearway_storage::rewind`).

use std::cell::RefCell;
use std::path::PathBuf;

use clap::Args;
use clearway_server::replication::receiver::client::Client;
use clearway_server::replication::receiver::conninfo::ConnInfo;
use clearway_server::replication::receiver::rewind::{RewindEvent, RewindOutcome, RewindRequest, rewind};
use clearway_storage::PAGE_SIZE;
use clearway_storage::rewind::RewindSummary;
use indicatif::{HumanBytes, ProgressBar, ProgressStyle};

use crate::error::{CommandError, Result};
use crate::options::{ConfigOptions, keep_private};
use crate::output::{line, notice};
use crate::signals::{OnHangUp, handle_signals, survive_file_size_limit};

/// Make a former primary a standby again, without copying everything
///
/// After a failover the former primary's directory may hold commits that the new primary never received. It cannot follow
/// the new primary then. This command finds where the two logs part, learns from both which pages have changed since, and
/// fetches those pages, and the log behind them, from the new primary. What was committed here alone is lost: keep a copy
/// of the directory if you need it.
///
/// No server may be running on the directory; it may have been stopped in order or killed. The user in --from needs
/// REPLICATION. The new primary makes a checkpoint, and serves its clients meanwhile. A rewind that was interrupted is
/// started again with the same command; until it is complete, no server opens the directory. Configuration files,
/// certificates and pg_hba.conf stay as they are.
///
/// It is refused if the log since the parting is not kept on one of the sides: then the way out is a new base backup,
/// "clearway standby" with the name of an empty directory.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    clearway rewind --from 'host=127.0.0.1 port=5434' --data /var/tmp/old --dry-run    what would be fetched\n  \
    clearway rewind --from 'host=127.0.0.1 port=5434' --data /var/tmp/old --slot old --create-slot\n  \
    clearway standby --from 'host=127.0.0.1 port=5434' --data /var/tmp/old --slot old")]
pub(crate) struct Arguments {
    /// The new primary: 'host=… port=… user=… passfile=… sslmode=…' or postgresql://…
    #[arg(long, value_name = "CONNINFO")]
    from: String,
    /// Data directory of the former primary
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Only say how many pages would be fetched; nothing in the directory is changed
    #[arg(long)]
    dry_run: bool,
    /// Replication slot that keeps the new primary's log until the standby uses it
    #[arg(long, value_name = "NAME", requires = "create_slot")]
    slot: Option<String>,
    /// Make the slot, if it is not there
    #[arg(long, requires = "slot")]
    create_slot: bool,
    #[command(flatten)]
    config: ConfigOptions,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let config = arguments.config.load(Some(&arguments.data))?;
    let from: ConnInfo = arguments.from.parse()?;
    keep_private(&arguments.data, config.allow_group_access)?;
    let stop = handle_signals(OnHangUp::default())?;
    survive_file_size_limit()?;
    let request = RewindRequest {
        dir: arguments.data.clone(),
        fsync: config.fsync,
        dry_run: arguments.dry_run,
        slot: arguments.slot.clone(),
    };
    let address = RefCell::new(String::new());
    let connect = || {
        let client = Client::connect(&from, config.wal_receiver_timeout.duration(), &stop)?;
        client.address().clone_into(&mut address.borrow_mut());
        Ok(client)
    };
    let bar = progress_bar();
    let outcome = rewind(connect, &request, |event| match event {
        RewindEvent::Parts(fork) => notice(format_args!(
            "the log of {} and that of {} part at {fork}",
            arguments.data.display(),
            address.borrow()
        )),
        RewindEvent::SlotMade => notice(format_args!(
            "made the replication slot \"{}\" at {}",
            request.slot.as_deref().unwrap_or_default(),
            address.borrow()
        )),
        RewindEvent::Progress(progress) => {
            bar.set_length(progress.relations as u64);
            bar.set_position(progress.relations_done as u64);
            let bytes = progress.pages * PAGE_SIZE as u64 + progress.log_bytes;
            bar.set_message(HumanBytes(bytes).to_string());
        }
        _ => {}
    });
    bar.finish_and_clear();
    let shown = arguments.data.display();
    match outcome? {
        RewindOutcome::GoesOn => line(format_args!(
            "nothing to do: the log of {} goes on from that of {shown}, which can follow as it is: \"clearway standby --data \
             {shown} --from …\"",
            address.borrow()
        )),
        RewindOutcome::Completed if arguments.dry_run => line(format_args!(
            "an earlier rewind of {shown} has fetched everything: without --dry-run it is completed, and no server is needed"
        )),
        RewindOutcome::Completed => line(format_args!(
            "completed the rewind of {shown} that was interrupted behind its last page; \"clearway standby --data {shown} \
             --from …\" goes on with it"
        )),
        RewindOutcome::Rewound(summary) => said(arguments, &summary),
        _ => Err(CommandError::Usage(
            "an outcome that this program does not know".to_owned(),
        )),
    }
}

fn said(arguments: &Arguments, summary: &RewindSummary) -> Result<()> {
    let shown = arguments.data.display();
    let bytes = HumanBytes(summary.pages * PAGE_SIZE as u64);
    let lost = format!(
        "log from {} to {} that only it has is given up",
        summary.fork, summary.own_end
    );
    if arguments.dry_run {
        return line(format_args!(
            "a rewind of {shown} would fetch {} of {} pages ({bytes}) and the log behind them, and remove {} files; {lost}. \
             Nothing was changed",
            summary.pages, summary.pages_total, summary.removed
        ));
    }
    line(format_args!(
        "rewound {shown}: {} of {} pages ({bytes}) and {} of log were fetched, {} files removed; {lost}. \"clearway standby \
         --data {shown} --from …\" goes on with it",
        summary.pages,
        summary.pages_total,
        HumanBytes(summary.log_bytes),
        summary.removed
    ))
}

/// A bar for relations, which is not shown where there is no terminal.
fn progress_bar() -> ProgressBar {
    let bar = ProgressBar::new(0);
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos} of {len} files, {msg}") {
        bar.set_style(style);
    }
    bar
}
