//! `clearway stub-server`: constants instead of an engine, the ceiling of any measurement through a socket.

use std::path::PathBuf;

use clap::Args;
use clearway_server::{ServerOptions, stub};

use crate::error::Result;
use crate::signals::{OnHangUp, handle_signals};

/// Answer every statement with constants: shows how much of a measurement is the client and the kernel
#[derive(Debug, Args)]
#[command(hide = true)]
pub(crate) struct Arguments {
    /// Address to listen on, loopback only; "none" for Unix-domain sockets alone
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:5434")]
    listen: String,
    /// Directory for a Unix-domain socket, `.s.PGSQL.<port>`
    #[arg(long, value_name = "DIR")]
    socket_dir: Option<PathBuf>,
    /// Port in the Unix-domain socket's name, if it differs from that of --listen
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    port: u16,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let stop = handle_signals(OnHangUp::default())?;
    let options = ServerOptions {
        listen: (arguments.listen != "none").then(|| arguments.listen.clone()),
        socket_dir: arguments.socket_dir.clone(),
        port: arguments.port,
        ..ServerOptions::default()
    };
    stub::run(options, &stop)?;
    Ok(())
}
