//! The contents of a certificate: the hash that binds a login to it, and the name that it is for.

use ring::digest::{Algorithm, SHA256, SHA384, SHA512, digest};
use x509_parser::oid_registry as oid;
use x509_parser::prelude::{FromDer, X509Certificate};

/// The hash of a server's certificate that SCRAM's `tls-server-end-point` binds to (RFC 5929): by the function of its
/// signature, and by SHA-256 where that is MD5 or SHA-1. Nothing where the signature has no such function.
pub(crate) fn end_point_hash(certificate: &[u8]) -> Option<Vec<u8>> {
    let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
    let signature = &parsed.signature_algorithm.algorithm;
    let function: &Algorithm = [
        (oid::OID_PKCS1_MD5WITHRSAENC, &SHA256),
        (oid::OID_PKCS1_SHA1WITHRSA, &SHA256),
        (oid::OID_PKCS1_SHA256WITHRSA, &SHA256),
        (oid::OID_PKCS1_SHA384WITHRSA, &SHA384),
        (oid::OID_PKCS1_SHA512WITHRSA, &SHA512),
        (oid::OID_SIG_ECDSA_WITH_SHA256, &SHA256),
        (oid::OID_SIG_ECDSA_WITH_SHA384, &SHA384),
        (oid::OID_SIG_ECDSA_WITH_SHA512, &SHA512),
    ]
    .into_iter()
    .find_map(|(name, function)| (*signature == name).then_some(function))?;
    Some(digest(function, certificate).as_ref().to_vec())
}

/// The common name of a certificate's subject, if it has exactly one.
pub(crate) fn common_name(certificate: &[u8]) -> Option<String> {
    let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
    let mut names = parsed.subject().iter_common_name();
    let name = names.next()?.as_str().ok()?.to_owned();
    (names.next().is_none() && !name.contains('\0')).then_some(name)
}
