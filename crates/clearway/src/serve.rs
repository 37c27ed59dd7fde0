//! `clearway serve`: the server.

use std::path::{Path, PathBuf};
use std::thread;

use clap::Args;
use clearway_engine::config::{SessionScheduling, Ssl, SslVersion};
use clearway_engine::{Config, Engine};
use clearway_server::{AnswerDeadline, Scheduling, Server, ServerOptions, TlsOptions, check_rules};

use crate::error::{CommandError, Result, plural};
use crate::metrics::MetricsPage;
use crate::options::keep_private;
use crate::output::notice;
use crate::served::{LISTEN, ServedOptions, socket_dir};
use crate::server_log;
use crate::signals::{OnHangUp, handle_signals, survive_file_size_limit};
use crate::supervisor;

/// Serve a data directory to PostgreSQL clients
///
/// The directory is created if it is not there, and recovered if it was not closed cleanly. SIGTERM or SIGINT shuts
/// down with a checkpoint, SIGQUIT without one; SIGHUP reads the configuration file again. A data directory is one
/// database, called "postgres" unless the configuration says otherwise. pg_hba.conf in the
/// directory says who may connect, and how; without it all users of this machine may, as any role. Clients can encrypt their
/// connections when server.crt and server.key are in the directory (`clearway cert` makes them); without, only loopback
/// addresses and Unix-domain sockets are listened on.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    clearway serve --data /var/tmp/clearway\n  \
    clearway serve --data /var/tmp/clearway --socket-dir /tmp --config clearway.toml\n\n\
    Then, in another terminal:\n  \
    psql -h 127.0.0.1 -p 5433 postgres\n  \
    pgbench -h /tmp -p 5433 -i -s 10 postgres && pgbench -h /tmp -p 5433 -M prepared -c 16 -T 10 postgres")]
pub(crate) struct Arguments {
    #[command(flatten)]
    served: ServedOptions,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let served = arguments.served.clone();
    let data = served.data()?;
    let load = {
        let data = data.clone();
        move || served.load(&data, &data, LISTEN)
    };
    let config = load()?;
    server_log::configure(&config);
    let on_hang_up = OnHangUp::default();
    let stop = handle_signals(on_hang_up.clone())?;
    survive_file_size_limit()?;
    keep_private(&data, config.allow_group_access)?;
    let server = bind(arguments.served.port, &data, &config, None)?;
    let metrics = MetricsPage::listen(&config.metrics_listen)?;
    thread::scope(|scope| {
        let _stop_on_panic = OnPanic(|| stop.stop());
        let running = scope.spawn(|| server.run(&stop));
        let opened = Engine::open(&data, config).map_err(CommandError::database("opening", &data));
        match opened {
            Ok(engine) => {
                notice(format_args!("{}", recovery_line(&engine)));
                on_hang_up.reload(load, &engine);
                metrics.show(&engine);
                server.ready(engine);
                let addresses = addresses(&server);
                for address in &addresses {
                    notice(format_args!("ready to accept connections on {address}"));
                }
                supervisor::ready(&addresses);
            }
            Err(error) => {
                stop.stop();
                let _ = running.join();
                return Err(error);
            }
        }
        match running.join() {
            Ok(outcome) => outcome?,
            Err(panic) => std::panic::resume_unwind(panic),
        }
        notice(format_args!("shut down"));
        Ok(())
    })
}

/// Takes the sockets of a server, so that clients that come during recovery get an answer (57P03) instead of a refused
/// connection. `port` is that in the name of the Unix-domain socket, if it differs. Rules for logins that are not understood, or
/// cannot be kept, are an error.
pub(crate) fn bind(
    port: u16,
    data: &Path,
    config: &Config,
    answer_deadline: Option<AnswerDeadline>,
) -> Result<Server> {
    let options = server_options(port, data, config, answer_deadline);
    check_rules(data, &options.hba_file, options.tls.as_ref())?;
    Ok(Server::bind_early(options)?)
}

/// The options of a server of the directory `data`.
pub(crate) fn server_options(
    port: u16,
    data: &Path,
    config: &Config,
    answer_deadline: Option<AnswerDeadline>,
) -> ServerOptions {
    ServerOptions {
        listen: (config.listen != "none").then(|| config.listen.clone()),
        socket_dir: socket_dir(config).map(Path::to_owned),
        port,
        max_connections: config.max_connections as usize,
        superuser_reserved_connections: config.superuser_reserved_connections as usize,
        authentication_timeout: config.authentication_timeout.duration(),
        scheduling: Scheduling {
            sessions: match config.session_scheduling {
                SessionScheduling::Adaptive => clearway_server::SessionScheduling::Adaptive,
                SessionScheduling::Normal => clearway_server::SessionScheduling::Normal,
                SessionScheduling::Batch => clearway_server::SessionScheduling::Batch,
            },
            time_slice: config.mechanisms.time_slice,
        },
        message_bytes_max: config.max_message_size.bytes() as u32,
        hba_file: PathBuf::from(&config.hba_file),
        tls: tls_options(data, config),
        answer_deadline,
    }
}

/// The files of TLS, if connections may be encrypted.
fn tls_options(data: &Path, config: &Config) -> Option<TlsOptions> {
    // An absolute path stays what it is.
    let options = TlsOptions {
        certificate: data.join(&config.ssl_cert_file),
        key: data.join(&config.ssl_key_file),
        authorities: (!config.ssl_ca_file.is_empty()).then(|| data.join(&config.ssl_ca_file)),
        only_1_3: config.ssl_min_protocol_version == SslVersion::Tls13,
    };
    let is_on = match config.ssl {
        Ssl::Auto => options.certificate.exists() && options.key.exists(),
        given => given == Ssl::On,
    };
    is_on.then_some(options)
}

/// Does something when a panic ends this thread: a scope waits for its other threads, and would wait for ever.
pub(crate) struct OnPanic<F: Fn()>(pub(crate) F);

impl<F: Fn()> Drop for OnPanic<F> {
    fn drop(&mut self) {
        if thread::panicking() {
            (self.0)();
        }
    }
}

/// The addresses that clients can connect to.
pub(crate) fn addresses(server: &Server) -> Vec<String> {
    let tcp = server.local_addr().map(|address| address.to_string());
    let unix = server.socket_path().map(|path| path.display().to_string());
    tcp.into_iter().chain(unix).collect()
}

/// The outcome of recovery, in a line.
pub(crate) fn recovery_line(engine: &Engine) -> String {
    let report = engine.recovery();
    if report.clean {
        return "nothing to recover".to_owned();
    }
    format!(
        "recovered: {} with {} replayed in {:.2?}, log {} to {}",
        plural(report.records as usize, "record"),
        plural(report.commits as usize, "commit"),
        report.elapsed,
        report.redo.0,
        report.end.0
    )
}
