//! The server's half of SCRAM-SHA-256 and SCRAM-SHA-256-PLUS: from the mechanism that the client chooses to its proof.
//!
//! ```text
//! S: AuthenticationSASL  SCRAM-SHA-256-PLUS over TLS, SCRAM-SHA-256
//! C: SASLInitialResponse client first          → Exchange::first  → server first
//! C: SASLResponse        client final, proof   → Exchange::last   → server final: the server has the verifier, too
//! ```
//!
//! # Rules
//!
//! 1. A user that there is not goes through the same steps: its verifier is one that no proof fits
//!    (`clearway_engine::password`).
//! 2. The nonce of the answer is the client's with one of ours behind it, and comes back unchanged; the binding in the last
//!    message is that of the first. Otherwise the exchange ends as a broken protocol (08P01), not as a wrong password.
//! 3. No message says which of user and password was wrong.
//! 4. Under PLUS the proof is also about the server's certificate (`tls-server-end-point`): a machine in the middle, which has
//!    another one, cannot hand it on. A client that can bind and was told by such a machine that the server cannot says so
//!    (`y`), and is refused.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clearway_engine::password::{SCRAM_SHA_256, ScramVerifier, random_bytes};
use clearway_engine::{EngineError, SqlState};

use crate::wire::sasl::{Binding, ClientFinal, ClientFirst, SaslError, initial_response};

/// The mechanism that binds to the server's certificate.
pub(super) const SCRAM_SHA_256_PLUS: &str = "SCRAM-SHA-256-PLUS";

/// The only kind of binding.
const END_POINT: &str = "tls-server-end-point";

/// Bytes of our part of the nonce.
const NONCE_BYTES: usize = 18;

/// An exchange after its first message.
#[derive(Debug)]
pub(super) struct Exchange {
    verifier: ScramVerifier,
    /// The text that is signed: the first messages.
    signed: String,
    nonce: String,
    /// Header and data of the binding, as the last message has them.
    binding: String,
}

/// 08P01
fn broken(what: impl ToString) -> EngineError {
    EngineError::new(SqlState::PROTOCOL_VIOLATION, what.to_string())
}

/// Holds rule 4: `bound` is the client's choice of PLUS, which it had if it was `offered`.
fn check_binding(binding: Binding<'_>, bound: bool, offered: bool) -> Result<(), EngineError> {
    match (binding, bound) {
        (Binding::Type(END_POINT), true) | (Binding::None, false) => Ok(()),
        (Binding::NotOffered, false) if !offered => Ok(()),
        (Binding::NotOffered, false) => Err(EngineError::new(
            SqlState::INVALID_AUTHORIZATION_SPECIFICATION,
            "SCRAM channel binding negotiation error",
        )
        .with_detail(
            "The client supports SCRAM channel binding but thinks the server does not. However, this server does support \
             channel binding.",
        )),
        (Binding::Type(other), true) => Err(broken(format!(
            "unsupported SCRAM channel-binding type \"{other}\""
        ))),
        (Binding::Type(_), false) => Err(broken(
            "The client selected SCRAM-SHA-256 without channel binding, but the SCRAM message includes channel \
             binding data.",
        )),
        (_, true) => Err(broken(
            "The client selected SCRAM-SHA-256-PLUS, but the SCRAM message does not include channel binding data.",
        )),
    }
}

impl From<SaslError> for Failure {
    fn from(error: SaslError) -> Failure {
        Failure::Broken(broken(error))
    }
}

/// The end of an exchange without a login.
#[derive(Debug)]
pub(super) enum Failure {
    /// The client does not speak the protocol.
    Broken(EngineError),
    /// The proof is wrong.
    Refused,
}

impl Exchange {
    /// Takes the first message; the answer to it. `end_point` is the hash that PLUS binds to, where PLUS was offered.
    pub(super) fn first(
        body: &[u8],
        verifier: ScramVerifier,
        end_point: Option<&[u8]>,
    ) -> Result<(Exchange, String), Failure> {
        let (mechanism, text) = initial_response(body)?;
        let bound_to = match (mechanism, end_point) {
            (SCRAM_SHA_256_PLUS, Some(hash)) => Some(hash),
            (SCRAM_SHA_256, _) => None,
            _ => {
                let what = "client selected an invalid SASL authentication mechanism";
                return Err(Failure::Broken(broken(what)));
            }
        };
        let first = ClientFirst::parse(text)?;
        check_binding(first.binding, bound_to.is_some(), end_point.is_some()).map_err(Failure::Broken)?;
        let more: [u8; NONCE_BYTES] = random_bytes().map_err(Failure::Broken)?;
        let nonce = first.nonce.to_owned() + &STANDARD.encode(more);
        let answer = format!(
            "r={nonce},s={},i={}",
            STANDARD.encode(&verifier.salt),
            verifier.iterations
        );
        let exchange = Exchange {
            verifier,
            signed: format!("{},{answer}", first.bare),
            nonce,
            binding: STANDARD.encode([first.header.as_bytes(), bound_to.unwrap_or_default()].concat()),
        };
        Ok((exchange, answer))
    }

    /// Takes the last message; the answer to it, if the proof is right.
    pub(super) fn last(self, body: &[u8]) -> Result<String, Failure> {
        let text = std::str::from_utf8(body).map_err(|_| SaslError::Malformed)?;
        let last = ClientFinal::parse(text)?;
        if last.nonce != self.nonce {
            return Err(Failure::Broken(broken("SCRAM nonces do not match")));
        }
        if last.binding != self.binding {
            return Err(Failure::Broken(broken(
                "unexpected SCRAM channel-binding attribute in client-final-message",
            )));
        }
        let proof = STANDARD.decode(last.proof).map_err(|_| SaslError::Malformed)?;
        let signed = format!("{},{}", self.signed, last.without_proof);
        match self.verifier.check(&proof, signed.as_bytes()) {
            Some(signature) => Ok(format!("v={}", STANDARD.encode(signature))),
            None => Err(Failure::Refused),
        }
    }
}
