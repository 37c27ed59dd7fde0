//! The answer to a client that wants an encrypted connection, and the handshake.

use clearway_engine::{Encryption, EngineError, SqlState};
use rustls::{ProtocolVersion, ServerConnection};
use tracing::info;

use crate::authentication::Refusal;
use crate::channel::Channel;
use crate::codec;
use crate::reader::ReadError;
use crate::shared::Shared;
use crate::tls::ALPN;
use crate::wire::startup::Startup;

/// Answers the client's wish; afterwards the next packet is its first, or the same question in another form.
pub(crate) fn agree(shared: &Shared, channel: &mut Channel, asked: &Startup) -> Result<(), Refusal> {
    let broken = |what: &str| Refusal::Error(EngineError::new(SqlState::PROTOCOL_VIOLATION, what.to_owned()));
    if channel.socket.tls().is_some() {
        return Err(broken("encryption was asked for on an encrypted connection"));
    }
    let direct = *asked == Startup::Handshake;
    if !direct && channel.reader.has_buffered() {
        // Sent before our answer, so meant for an encrypted stream that an attacker is in the middle of.
        return Err(broken("received unencrypted data after an encryption request"));
    }
    let wants_tls = direct || *asked == Startup::Tls;
    let files = shared
        .tls
        .as_ref()
        .filter(|_| wants_tls && channel.socket.address().is_some());
    let Some(files) = files else {
        if direct {
            // No message of ours would be understood.
            return Err(Refusal::Read(ReadError::Closed));
        }
        channel.out.bytes.extend_from_slice(&[codec::DECLINE]);
        channel.flush();
        return Ok(());
    };
    let loaded = files.now();
    if !direct {
        channel.out.bytes.extend_from_slice(&[codec::ACCEPT_TLS]);
        channel.flush();
    }
    let connection = ServerConnection::new(loaded.config).map_err(|error| broken(&error.to_string()))?;
    if let Err(error) = channel.reader.shake_hands(&channel.socket, connection) {
        if let ReadError::Io(error) = &error {
            info!(
                address = channel.socket.peer().map(tracing::field::display),
                "could not accept SSL connection: {error}"
            );
        }
        return Err(Refusal::Read(ReadError::Closed));
    }
    let tls = channel.socket.tls();
    let said_what_for =
        tls.is_some_and(|tls| tls.with(|connection| connection.alpn_protocol() == Some(ALPN)));
    if direct && !said_what_for {
        return Err(broken(
            "received direct SSL connection request without ALPN protocol negotiation extension",
        ));
    }
    channel.end_point = loaded.end_point;
    Ok(())
}

/// The encryption of a connection, as `pg_stat_ssl` shows it.
pub(crate) fn described(channel: &Channel) -> Option<Encryption> {
    channel.socket.tls()?.with(|connection| {
        let suite = connection.negotiated_cipher_suite()?;
        let name = format!("{:?}", suite.suite());
        Some(Encryption {
            version: match connection.protocol_version()? {
                ProtocolVersion::TLSv1_2 => "TLSv1.2",
                _ => "TLSv1.3",
            },
            bits: if name.contains("AES_128") { 128 } else { 256 },
            // As OpenSSL writes the names of TLS 1.3.
            cipher: name.replace("TLS13_", "TLS_"),
        })
    })
}
