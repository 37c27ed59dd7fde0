//! A client proves who it is, before it has a session.
//!
//! # Steps
//!
//! 1. The first rule of `pg_hba.conf` that fits the connection says how ([`hba`]). Without a file, what is on this machine
//!    is trusted, and nothing else; but one of another name, which a setting has given it, has to be there.
//! 2. The client proves it: by its password ([`scram`]), by the user of its process (`peer`), by a certificate, or not at all.
//! 3. Only then the session is opened, and the client is told if its role may not log in.
//!
//! # Rules
//!
//! 1. Until then a client can cost a thread and a buffer of at most
//!    [`SMALL_MESSAGE_BYTES_MAX`](crate::wire::frame::SMALL_MESSAGE_BYTES_MAX) bytes, for `authentication_timeout`, counted
//!    from the connection's start: bytes that trickle in give it no more. It takes no session's place, and where no more
//!    connections fit, the oldest of the address that has most of those without a login makes room for a new one.
//! 2. The message of a failure is the same for a wrong password, a role without one, and a role that there is not; and so
//!    is the work before it.
//! 3. Failures from one address are answered later and later ([`crate::attempts`]). A client of that address that knows its
//!    password does not wait.
//! 4. `pg_hba.conf` is read for each connection, so that a change holds from the next one on. A file that is not understood
//!    lets no client in, and the log says which line it is.
//! 5. A client that has not come over loopback is let in by a password or a certificate, over TLS, and by no rule otherwise.

pub mod hba;
mod scram;

use std::net::IpAddr;
use std::path::Path;

use clearway_engine::password::SCRAM_SHA_256;
use clearway_engine::{Engine, EngineError, LoginRuleLine, SqlState};
use tracing::{info, warn};

use crate::channel::Channel;
use crate::codec;
use crate::error::ServerError;
use crate::options::HBA_FILE;
use crate::reader::ReadError;
use crate::shared::{Shared, wire_error};
use crate::tls::{TlsOptions, common_name};
use hba::{Asked, ClientCertificate, Demand, Method, Rules};
use scram::{Exchange, Failure, SCRAM_SHA_256_PLUS};

/// The client that asks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Login<'a> {
    pub(crate) user: &'a str,
    /// Absent for a connection that copies the log.
    pub(crate) database: Option<&'a str>,
}

/// An error that ends the connection.
pub(crate) enum Refusal {
    /// To be told.
    Error(EngineError),
    /// The client has gone, or was too slow.
    Read(ReadError),
}

impl From<EngineError> for Refusal {
    fn from(error: EngineError) -> Refusal {
        Refusal::Error(error)
    }
}

/// The rules in `file`, whose path begins at the data directory if it is relative.
pub(crate) fn rules(directory: &Path, file: &Path) -> Result<Rules, String> {
    let may_be_missing = file == Path::new(HBA_FILE);
    let file = directory.join(file);
    match std::fs::read_to_string(&file) {
        Ok(text) => Rules::parse(&text).map_err(|error| error.to_string()),
        Err(error) if may_be_missing && error.kind() == std::io::ErrorKind::NotFound => Ok(Rules::default()),
        Err(error) => Err(format!("cannot read {}: {error}", file.display())),
    }
}

/// The lines of the rules in `file`, for `pg_hba_file_rules`.
pub(crate) fn listed_rules(file: &Path) -> Vec<LoginRuleLine> {
    match std::fs::read_to_string(file) {
        Ok(text) => Rules::listed(&text),
        Err(_) => Vec::new(),
    }
}

/// Makes sure that the rules in `file` ([`ServerOptions::hba_file`](crate::ServerOptions::hba_file)) are understood, and that
/// clients can do what they ask for, before the data directory is served with these files of TLS.
pub fn check_rules(directory: &Path, file: &Path, tls: Option<&TlsOptions>) -> Result<(), ServerError> {
    let rules = rules(directory, file).map_err(ServerError::Rules)?;
    if rules.wants_certificates() && tls.is_none_or(|tls| tls.authorities.is_none()) {
        let what = "pg_hba.conf wants certificates of clients, which needs ssl and ssl_ca_file";
        return Err(ServerError::Rules(what.to_owned()));
    }
    if rules.trusts_over_tcp() {
        info!("pg_hba.conf trusts connections over TCP: each user of this machine can be any role");
    }
    Ok(())
}

/// 28000
fn refused(message: String) -> EngineError {
    EngineError::new(SqlState::INVALID_AUTHORIZATION_SPECIFICATION, message)
}

/// Has the client prove who it is.
pub(crate) fn authenticate(
    shared: &Shared,
    engine: &Engine,
    channel: &mut Channel,
    login: Login<'_>,
) -> Result<(), Refusal> {
    let address = channel.socket.address();
    let asked = Asked {
        address,
        own_address: channel.socket.own_address().map(|own| own.ip().to_canonical()),
        encrypted: channel.socket.tls().is_some(),
        database: login.database,
        user: login.user,
    };
    let rules = rules(engine.storage().dir(), &shared.hba_file).map_err(|what| {
        warn!("{what}; no client can connect until that is put right");
        refused("could not load pg_hba.conf".to_owned())
    })?;
    let demand = rules.demand(&asked, |role| engine.is_member(login.user, role));
    let Some(demand) = demand else {
        return Err(refused(format!("no pg_hba.conf entry for {}", described(&asked))).into());
    };
    if demand.method == Method::Reject {
        let text = format!("pg_hba.conf rejects connection for {}", described(&asked));
        return Err(refused(text).into());
    }
    require_proof_from_afar(&asked, demand)?;
    require_certificate(channel, demand, login.user)?;
    match demand.method {
        Method::Trust | Method::Cert | Method::Reject => Ok(()),
        Method::Peer => match channel.socket.peer_user().as_deref() == Some(login.user) {
            true => Ok(()),
            false => Err(refused(format!("Peer authentication failed for user \"{}\"", login.user)).into()),
        },
        Method::Scram => by_password(shared, engine, channel, login.user, address),
    }
}

/// Rule 5.
fn require_proof_from_afar(asked: &Asked<'_>, demand: Demand) -> Result<(), EngineError> {
    let is_near = |address: IpAddr| address.to_canonical().is_loopback();
    if asked.address.is_none_or(is_near) {
        return Ok(());
    }
    let proves = matches!(demand.method, Method::Scram | Method::Cert)
        || demand.certificate == ClientCertificate::OfUser;
    match (asked.encrypted, proves) {
        (true, true) => Ok(()),
        (false, _) => Err(refused(format!("connection without encryption is refused for {}", described(asked)))
            .with_hint("From another machine a client needs TLS: sslmode=require, and a hostssl line in pg_hba.conf.")),
        (true, false) => Err(refused(format!("connection without a proof is refused for {}", described(asked)))
            .with_hint("From another machine a client needs a password or a certificate: scram-sha-256 or cert in pg_hba.conf.")),
    }
}

/// Makes sure that the client has the certificate that its rule wants.
fn require_certificate(channel: &Channel, demand: Demand, user: &str) -> Result<(), EngineError> {
    if demand.certificate == ClientCertificate::NotNeeded {
        return Ok(());
    }
    let Some(certificate) = channel.socket.client_certificate() else {
        return Err(refused(
            "connection requires a valid client certificate".to_owned(),
        ));
    };
    if demand.certificate == ClientCertificate::OfUser && common_name(&certificate).as_deref() != Some(user) {
        return Err(refused(format!(
            "certificate authentication failed for user \"{user}\""
        )));
    }
    Ok(())
}

/// The connection, in PostgreSQL's words.
fn described(asked: &Asked<'_>) -> String {
    let host = match asked.address {
        Some(address) => format!("host \"{}\"", address.to_canonical()),
        None => "host \"[local]\"".to_owned(),
    };
    let encryption = match asked.encrypted {
        true => ", SSL encryption",
        false => ", no encryption",
    };
    match asked.database {
        Some(database) => format!(
            "{host}, user \"{}\", database \"{database}\"{encryption}",
            asked.user
        ),
        None => format!(
            "replication connection from {host}, user \"{}\"{encryption}",
            asked.user
        ),
    }
}

/// SCRAM-SHA-256, bound to the server's certificate where the client can.
fn by_password(
    shared: &Shared,
    engine: &Engine,
    channel: &mut Channel,
    user: &str,
    address: Option<IpAddr>,
) -> Result<(), Refusal> {
    let mechanisms: &[&str] = match channel.end_point {
        Some(_) => &[SCRAM_SHA_256_PLUS, SCRAM_SHA_256],
        None => &[SCRAM_SHA_256],
    };
    codec::authentication_sasl(&mut channel.out.bytes, mechanisms);
    channel.flush();
    let failed = |failure| match failure {
        Failure::Broken(error) => Refusal::Error(error),
        Failure::Refused => {
            info!(user, ?address, "a login failed");
            std::thread::sleep(shared.attempts.failed(address));
            Refusal::Error(EngineError::new(
                SqlState::from_code("28P01"),
                format!("password authentication failed for user \"{user}\""),
            ))
        }
    };
    let verifier = engine.verifier_of(user)?;
    password_message(channel)?;
    let (exchange, answer) =
        Exchange::first(channel.reader.last_body(), verifier, channel.end_point.as_deref())
            .map_err(failed)?;
    codec::authentication_sasl_continue(&mut channel.out.bytes, answer);
    channel.flush();
    password_message(channel)?;
    let answer = exchange.last(channel.reader.last_body()).map_err(failed)?;
    codec::authentication_sasl_final(&mut channel.out.bytes, answer);
    shared.attempts.succeeded(address);
    Ok(())
}

/// Reads the client's next message, which has to be its answer.
fn password_message(channel: &mut Channel) -> Result<(), Refusal> {
    let read = channel.reader.next_password(&channel.socket, &channel.presence);
    read.map_err(|error| match error {
        ReadError::Wire(error) => Refusal::Error(wire_error(&error)),
        error => Refusal::Read(error),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rule 5.
    #[test]
    fn a_client_from_afar_encrypts_and_proves_who_it_is() {
        use ClientCertificate::{NotNeeded, OfUser, Verified};
        use Method::{Cert, Scram, Trust};
        for (address, encrypted, method, certificate, expected) in [
            (None, false, Trust, NotNeeded, None),
            (Some("127.0.0.1"), false, Trust, NotNeeded, None),
            (Some("::ffff:127.0.0.1"), false, Trust, NotNeeded, None),
            (Some("192.0.2.1"), true, Scram, NotNeeded, None),
            (Some("192.0.2.1"), true, Cert, OfUser, None),
            (Some("192.0.2.1"), true, Trust, OfUser, None),
            (
                Some("192.0.2.1"),
                false,
                Scram,
                NotNeeded,
                Some("without encryption"),
            ),
            (Some("192.0.2.1"), true, Trust, NotNeeded, Some("without a proof")),
            (Some("192.0.2.1"), true, Trust, Verified, Some("without a proof")),
            (
                Some("2001:db8::1"),
                false,
                Trust,
                NotNeeded,
                Some("without encryption"),
            ),
        ] {
            let asked = Asked {
                address: address.map(|text| text.parse().unwrap()),
                own_address: None,
                encrypted,
                database: Some("shop"),
                user: "joe",
            };
            let outcome = require_proof_from_afar(&asked, Demand { method, certificate });
            match (outcome, expected) {
                (Ok(()), None) => {}
                (Err(error), Some(words)) => assert!(error.message().contains(words), "{address:?}: {error}"),
                (outcome, expected) => panic!("{address:?}, {method:?}: {outcome:?}, not {expected:?}"),
            }
        }
    }
}
