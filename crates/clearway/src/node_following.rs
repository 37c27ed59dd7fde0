//! The receiver of a node's standby, and the errors after which its directory has to be rewound or copied anew.

use std::path::Path;
use std::sync::Arc;

use clearway_engine::{Config, Engine};
use clearway_server::replication::following::{Following, FollowingEvent, Promotions};
use clearway_server::replication::receiver::ReceiverError;
use clearway_server::replication::receiver::client::Client;
use clearway_server::replication::receiver::conninfo::ConnInfo;
use clearway_server::replication::receiver::run::{ReceiverEvent, ReceiverOptions};
use clearway_server::replication::receiver::stream::StreamOptions;

use crate::error::Result;
use crate::node_directory::NodeDirectory;
use crate::output::notice;

/// Has the standby in `data` receive from the server of `conninfo`. `keeps_log` is the connection that made it one that can.
pub(crate) fn start(
    engine: &Arc<Engine>,
    config: &Config,
    data: &Path,
    conninfo: ConnInfo,
    keeps_log: Option<Client>,
) -> Result<Following> {
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
    let data = data.to_owned();
    let told = move |event: &FollowingEvent<'_>| {
        notice(format_args!("{event}"));
        if wants_copy(event) {
            // The loop of the node finds the mark, and has the process begin anew.
            NodeDirectory::mark(&data, &event.to_string());
        }
    };
    let engine = Arc::clone(engine);
    Ok(Following::start(
        engine,
        options,
        keeps_log,
        Promotions::ByOwner,
        told,
    )?)
}

/// True if the standby cannot go on with the log that it has.
fn wants_copy(event: &FollowingEvent<'_>) -> bool {
    match event {
        FollowingEvent::Receiver(ReceiverEvent::Refused(error)) => error.needs_copy(),
        // A primary's timeline is told before a node follows it, and a term of this one came later than that of the server
        // from which the newer timeline is: it leads again on the one that it had before.
        FollowingEvent::Receiver(ReceiverEvent::Interrupted(ReceiverError::EarlierTimeline { .. })) => true,
        _ => false,
    }
}
