//! A server with a certificate, an authority that has signed it, and a role with a password.

use std::path::{Path, PathBuf};

use clearway_engine::{Config, Engine};
use clearway_server::TlsOptions;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

use super::TestServer;

/// The password of the role `ann`.
pub const PASSWORD: &str = "open sesame";

/// An authority, and what it has signed, as files.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    directory: PathBuf,
}

impl Authority {
    pub fn new(directory: &Path, name: &str) -> Authority {
        let directory = directory.join(name);
        std::fs::create_dir(&directory).unwrap();
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let own = params.self_signed(&key).unwrap();
        std::fs::write(directory.join("root.crt"), own.pem()).unwrap();
        Authority {
            issuer: Issuer::new(params, key),
            directory,
        }
    }

    pub fn root(&self) -> PathBuf {
        self.directory.join("root.crt")
    }

    /// A certificate of this name and its key; for the addresses that a server has here.
    pub fn sign(&self, name: &str) -> (PathBuf, PathBuf) {
        let hosts = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let mut params = CertificateParams::new(hosts).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let signed = params.signed_by(&key, &self.issuer).unwrap();
        let files = (
            self.directory.join(format!("{name}.crt")),
            self.directory.join(format!("{name}.key")),
        );
        std::fs::write(&files.0, signed.pem()).unwrap();
        write_key(&files.1, &key.serialize_pem());
        files
    }
}

pub fn write_key(path: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
}

/// A server with a certificate, an authority for clients, and the role `ann`.
pub struct Encrypted {
    pub server: TestServer,
    pub authority: Authority,
    pub options: TlsOptions,
}

pub fn encrypted(rules: &str) -> Encrypted {
    let directory = tempfile::tempdir().unwrap();
    let authority = Authority::new(directory.path(), "authority");
    let (certificate, key) = authority.sign("server");
    let options = TlsOptions {
        certificate,
        key,
        authorities: Some(authority.root()),
        only_1_3: false,
    };
    let data = directory.path().join("data");
    let engine = Engine::open(&data, Config::default()).unwrap();
    let info = clearway_engine::SessionInfo {
        user: "postgres".to_owned(),
        ..Default::default()
    };
    let mut out = clearway_engine::Collected::default();
    let sql = format!(
        "create role ann login replication superuser password '{PASSWORD}'; create role bob login replication"
    );
    engine
        .session(info)
        .unwrap()
        .execute_simple(&sql, &mut out)
        .unwrap();
    std::fs::write(data.join("pg_hba.conf"), rules).unwrap();
    let tls = options.clone();
    let server = TestServer::with_options(engine, directory, |options| {
        options.tls = Some(tls);
        // Beyond loopback, which TLS allows.
        options.listen = Some("0.0.0.0:0".to_owned());
    });
    Encrypted {
        server,
        authority,
        options,
    }
}
