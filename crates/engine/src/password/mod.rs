//! Passwords: the verifier that the catalog keeps, and the check of a client's proof.
//!
//! A password is not kept. What is kept is PostgreSQL's verifier of SCRAM-SHA-256 (RFC 5802 and 7677):
//!
//! ```text
//! SCRAM-SHA-256$ITERATIONS:SALT$STORED_KEY:SERVER_KEY       salt and keys in base64
//!
//! salted     = PBKDF2-HMAC-SHA-256(SASLprep(password), salt, iterations)
//! client key = HMAC(salted, "Client Key")     stored key = SHA-256(client key)
//! server key = HMAC(salted, "Server Key")
//! ```
//!
//! A reader of the stored key cannot log in with it: the proof needs the client key, of which it is the hash. The server key
//! lets a server prove that it has the verifier.
//!
//! # Rules
//!
//! 1. A role that there is not, or that has no password, is answered as one that has: with a verifier that is made of the
//!    name and of a secret of this process, the same for the same name, and through the same steps. Its proof is
//!    refused after the same work.
//! 2. A proof is compared in constant time.
//! 3. No `Debug` shows a key.

use std::fmt;
use std::num::NonZeroU32;
use std::sync::OnceLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::rand::SecureRandom as _;
use ring::{digest, hmac, pbkdf2, rand};

use clearway_sql::error::{EngineError, Result, SqlState};

/// The method's name, in front of a verifier and in the exchange.
pub const SCRAM_SHA_256: &str = "SCRAM-SHA-256";

/// Bytes of a salt.
const SALT_BYTES: usize = 16;

/// Bytes of a key.
const KEY_BYTES: usize = 32;

/// Iterations of PBKDF2, unless the setting `scram_iterations` says otherwise.
pub const ITERATIONS: u32 = 4_096;

/// A key.
pub type Key = [u8; KEY_BYTES];

/// The part of a password that is kept.
#[derive(Clone, PartialEq, Eq)]
pub struct ScramVerifier {
    /// Iterations of PBKDF2.
    pub iterations: u32,
    /// The salt.
    pub salt: Vec<u8>,
    stored_key: Key,
    server_key: Key,
}

impl fmt::Debug for ScramVerifier {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = formatter.debug_struct("ScramVerifier");
        { shown }
            .field("iterations", &self.iterations)
            .finish_non_exhaustive()
    }
}

fn hmac_of(key: &[u8], message: &[u8]) -> Key {
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), message);
    let mut bytes = [0; KEY_BYTES];
    bytes.copy_from_slice(tag.as_ref());
    bytes
}

fn hash_of(bytes: &[u8]) -> Key {
    let digest = digest::digest(&digest::SHA256, bytes);
    let mut hash = [0; KEY_BYTES];
    hash.copy_from_slice(digest.as_ref());
    hash
}

/// Bytes that cannot be foreseen.
pub fn random_bytes<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    match rand::SystemRandom::new().fill(&mut bytes) {
        Ok(()) => Ok(bytes),
        Err(_) => Err(EngineError::internal("could not generate random values")),
    }
}

impl ScramVerifier {
    /// The verifier of a password, with a salt of its own.
    pub fn of_password(password: &str, iterations: u32) -> Result<ScramVerifier> {
        let salt: [u8; SALT_BYTES] = random_bytes()?;
        Ok(ScramVerifier::with_salt(password, &salt, iterations))
    }

    fn with_salt(password: &str, salt: &[u8], iterations: u32) -> ScramVerifier {
        // As PostgreSQL: a password that SASLprep refuses is taken as it is.
        let prepared = stringprep::saslprep(password);
        let prepared = prepared.as_deref().unwrap_or(password);
        let mut salted = [0; KEY_BYTES];
        pbkdf2::derive(
            pbkdf2::PBKDF2_HMAC_SHA256,
            NonZeroU32::new(iterations).unwrap_or(NonZeroU32::MIN),
            salt,
            prepared.as_bytes(),
            &mut salted,
        );
        ScramVerifier {
            iterations,
            salt: salt.to_vec(),
            stored_key: hash_of(&hmac_of(&salted, b"Client Key")),
            server_key: hmac_of(&salted, b"Server Key"),
        }
    }

    /// A verifier as PostgreSQL writes it; `None` for any other text.
    pub fn parse(text: &str) -> Option<ScramVerifier> {
        let (head, keys) = text
            .strip_prefix(SCRAM_SHA_256)?
            .strip_prefix('$')?
            .split_once('$')?;
        let (iterations, salt) = head.split_once(':')?;
        let (stored, server) = keys.split_once(':')?;
        let key = |text: &str| Key::try_from(STANDARD.decode(text).ok()?).ok();
        Some(ScramVerifier {
            iterations: iterations.parse().ok().filter(|count| *count > 0)?,
            salt: STANDARD.decode(salt).ok().filter(|salt| !salt.is_empty())?,
            stored_key: key(stored)?,
            server_key: key(server)?,
        })
    }

    /// A verifier that no proof fits, for a role without one: the same for the same name (rule 1).
    pub fn that_fits_nothing(name: &str, iterations: u32) -> Result<ScramVerifier> {
        static SECRET: OnceLock<Key> = OnceLock::new();
        let secret = match SECRET.get() {
            Some(secret) => secret,
            None => {
                let fresh = random_bytes()?;
                SECRET.get_or_init(|| fresh)
            }
        };
        let salt = hmac_of(secret, name.as_bytes());
        Ok(ScramVerifier {
            iterations,
            salt: salt[..SALT_BYTES].to_vec(),
            stored_key: random_bytes()?,
            server_key: random_bytes()?,
        })
    }

    /// True if `password` is the one that the verifier was made of.
    pub fn fits(&self, password: &str) -> bool {
        let other = ScramVerifier::with_salt(password, &self.salt, self.iterations);
        is_same(&other.stored_key, &self.stored_key)
    }

    /// Checks a client's proof over the messages of the exchange; the server's signature over the same, if the proof is
    /// right.
    pub fn check(&self, proof: &[u8], messages: &[u8]) -> Option<Key> {
        let signature = hmac_of(&self.stored_key, messages);
        let mut client_key = [0; KEY_BYTES];
        let is_whole = proof.len() == KEY_BYTES;
        for (place, byte) in client_key.iter_mut().enumerate() {
            *byte = signature[place] ^ proof.get(place).unwrap_or(&0);
        }
        let is_right = is_same(&hash_of(&client_key), &self.stored_key);
        (is_right && is_whole).then(|| hmac_of(&self.server_key, messages))
    }
}

/// True if two keys are the same: a comparison in constant time, of their tags under one of them as the key.
fn is_same(one: &Key, other: &Key) -> bool {
    let key = hmac::Key::new(hmac::HMAC_SHA256, one);
    hmac::verify(
        &key,
        b"same",
        hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, other), b"same").as_ref(),
    )
    .is_ok()
}

impl fmt::Display for ScramVerifier {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let coded = |bytes: &[u8]| STANDARD.encode(bytes);
        write!(
            formatter,
            "{SCRAM_SHA_256}${}:{}${}:{}",
            self.iterations,
            coded(&self.salt),
            coded(&self.stored_key),
            coded(&self.server_key)
        )
    }
}

/// The verifier to be kept for a password or for a verifier that the client has made; `None` for an empty password, which
/// no login would fit. MD5 hashes are refused: they can be used without the password, and nothing here takes them.
pub(crate) fn to_keep(password: &str, iterations: u32) -> Result<Option<ScramVerifier>> {
    if let Some(verifier) = ScramVerifier::parse(password) {
        return Ok(Some(verifier).filter(|verifier| !verifier.fits("")));
    }
    let is_md5 = password.len() == 35
        && password
            .strip_prefix("md5")
            .is_some_and(|hash| hash.bytes().all(|byte| byte.is_ascii_hexdigit()));
    if is_md5 {
        return Err(
            EngineError::new(SqlState::FEATURE_NOT_SUPPORTED, "MD5 passwords are not supported")
                .with_hint("Give the password, or its SCRAM-SHA-256 verifier."),
        );
    }
    if password.is_empty() {
        return Ok(None);
    }
    ScramVerifier::of_password(password, iterations).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made by PostgreSQL 15 of the password `pencil`.
    const OF_PENCIL: &str = "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=";

    #[test]
    fn the_verifier_of_rfc_7677() {
        let verifier = ScramVerifier::parse(OF_PENCIL).unwrap();
        assert!(verifier.fits("pencil") && !verifier.fits("Pencil"));
        assert_eq!(verifier.to_string(), OF_PENCIL);
        let again = ScramVerifier::with_salt("pencil", &verifier.salt, 4_096);
        assert!(again == verifier);
        // The exchange that the RFC shows.
        let messages = "n=user,r=rOprNGfwEbeRWgbNEkqO,\
                        r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,\
                        c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
        let proof = STANDARD
            .decode("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
            .unwrap();
        let signature = verifier.check(&proof, messages.as_bytes()).unwrap();
        assert_eq!(
            STANDARD.encode(signature),
            "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
        );
        assert_eq!(verifier.check(&proof[..31], messages.as_bytes()), None);
        let longer = [&proof[..], b"x"].concat();
        assert_eq!(verifier.check(&longer, messages.as_bytes()), None);
        assert_eq!(verifier.check(&proof, b"other messages"), None);
    }

    #[test]
    fn what_is_kept_of_a_password() {
        let kept = |text: &str| to_keep(text, 4_096);
        assert!(kept("secret").unwrap().unwrap().fits("secret"));
        assert_eq!(kept(OF_PENCIL).unwrap().unwrap().to_string(), OF_PENCIL);
        assert_eq!(kept("").unwrap(), None);
        assert_eq!(
            kept("md5a4b5d7f0a5d7c8e5c0a4b5d7f0a5d7c8")
                .unwrap_err()
                .sqlstate(),
            SqlState::FEATURE_NOT_SUPPORTED
        );
        // A text that only begins like a hash is a password.
        assert!(kept("md5").unwrap().unwrap().fits("md5"));
        assert!(kept("SCRAM-SHA-256$x").unwrap().unwrap().fits("SCRAM-SHA-256$x"));
        // A soft hyphen is nothing, and a no-break space is a space.
        assert!(kept("I\u{ad}X").unwrap().unwrap().fits("IX"));
        assert!(kept("a\u{a0}b").unwrap().unwrap().fits("a b"));
    }

    #[test]
    fn a_role_without_a_password_has_the_same_salt_each_time() {
        let salt = |name: &str| ScramVerifier::that_fits_nothing(name, 4_096).unwrap().salt;
        assert_eq!(salt("alice"), salt("alice"));
        assert_ne!(salt("alice"), salt("bob"));
        assert!(!ScramVerifier::that_fits_nothing("alice", 4_096).unwrap().fits(""));
    }

    #[test]
    fn no_key_is_shown() {
        let verifier = ScramVerifier::parse(OF_PENCIL).unwrap();
        assert_eq!(format!("{verifier:?}"), "ScramVerifier { iterations: 4096, .. }");
    }
}
