//! TLS: handshakes, logins that are bound to a certificate, certificates of clients, and a standby's connection.

mod support;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clearway_engine::SessionActivity;
use clearway_server::replication::receiver::client::Client;
use clearway_server::{StopSignal, TlsOptions};
use postgres_protocol::authentication::sasl::{ChannelBinding, ScramSha256};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned, SupportedProtocolVersion, version};
use support::encrypted::{Authority, Encrypted, PASSWORD, encrypted};
use support::{PATIENCE, Raw, Reply, kinds, message, query, startup, wait_for};

const TLS_REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];

const TWELVE: &[&SupportedProtocolVersion] = &[&version::TLS12];
const THIRTEEN: &[&SupportedProtocolVersion] = &[&version::TLS13];

type Stream = StreamOwned<ClientConnection, TcpStream>;

/// A client's side of the handshake.
struct Knock {
    versions: &'static [&'static SupportedProtocolVersion],
    alpn: bool,
    /// Without the request before it.
    direct: bool,
    certificate: Option<(PathBuf, PathBuf)>,
}

impl Default for Knock {
    fn default() -> Knock {
        Knock {
            versions: rustls::ALL_VERSIONS,
            alpn: true,
            direct: false,
            certificate: None,
        }
    }
}

impl Encrypted {
    fn knock(&self, knock: &Knock) -> std::io::Result<Raw<Stream>> {
        let mut roots = RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_file(self.authority.root()).unwrap())
            .unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(knock.versions)
            .unwrap()
            .with_root_certificates(roots);
        let mut config = match &knock.certificate {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let chain = vec![CertificateDer::from_pem_file(certificate).unwrap()];
                builder
                    .with_client_auth_cert(chain, PrivateKeyDer::from_pem_file(key).unwrap())
                    .unwrap()
            }
        };
        if knock.alpn {
            config.alpn_protocols = vec![b"postgresql".to_vec()];
        }
        let mut plain = self.server.connect().stream;
        if !knock.direct {
            plain.write_all(&TLS_REQUEST).unwrap();
            let mut answer = [0];
            plain.read_exact(&mut answer).unwrap();
            assert_eq!(answer, *b"S");
        }
        let name = ServerName::try_from("127.0.0.1").unwrap();
        let connection = ClientConnection::new(Arc::new(config), name).unwrap();
        let mut stream = StreamOwned::new(connection, plain);
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock)?;
        }
        Ok(Raw { stream })
    }

    /// The start-up's last message: ReadyForQuery, or an error.
    fn outcome(&self, knock: &Knock, user: &str) -> String {
        let Ok(mut raw) = self.knock(knock) else {
            return "no handshake".to_owned();
        };
        // Under TLS 1.3 the client learns that its certificate is refused when it reads.
        if raw.stream.write_all(&startup(&[("user", user)])).is_err() {
            return "no handshake".to_owned();
        }
        let mut one = [0];
        match raw.stream.read(&mut one) {
            Err(_) | Ok(0) => "no handshake".to_owned(),
            Ok(_) if one[0] == b'R' => "in".to_owned(),
            Ok(_) => {
                let mut rest = Vec::new();
                let _ = raw.stream.read_to_end(&mut rest);
                Reply {
                    kind: one[0],
                    body: rest[4..].to_vec(),
                }
                .field(b'M')
                .unwrap()
            }
        }
    }
}

#[test]
fn requests_and_direct_handshakes_are_encrypted() {
    let encrypted = encrypted("host all all all trust");
    for (versions, name) in [(TWELVE, "TLSv1.2"), (THIRTEEN, "TLSv1.3")] {
        for direct in [false, true] {
            let knock = Knock {
                versions,
                direct,
                ..Knock::default()
            };
            let mut raw = encrypted.knock(&knock).unwrap();
            raw.start(&[("user", "ann")]);
            let row = raw.rows("select ssl, version, bits from pg_stat_ssl where pid = pg_backend_pid()");
            let expected = ["t", name, "256"].map(|text| Some(text.to_owned()));
            assert_eq!(row, [expected]);
            // Many records, in both directions.
            let long = "x".repeat(300_000);
            assert_eq!(raw.value(&format!("select '{long}'")), long);
            assert_eq!(
                raw.rows("select repeat('y', 100) from generate_series(1, 20000)")
                    .len(),
                20_000
            );
        }
    }
    assert_eq!(
        encrypted.outcome(
            &Knock {
                alpn: false,
                ..Knock::default()
            },
            "ann"
        ),
        "in"
    );
    let direct = Knock {
        alpn: false,
        direct: true,
        ..Knock::default()
    };
    let refusal = "received direct SSL connection request without ALPN protocol negotiation extension";
    assert_eq!(encrypted.outcome(&direct, "ann"), refusal);
}

/// Bytes that have come before the handshake would be taken for what an encrypted client says.
#[test]
fn nothing_in_clear_is_taken_for_what_is_encrypted() {
    let encrypted = encrypted("host all all all trust");
    let mut raw = encrypted.server.connect();
    raw.send(&[&TLS_REQUEST[..], &startup(&[("user", "ann")])].concat());
    let replies = raw.until_closed();
    assert_eq!(replies.last().map(Reply::sqlstate).as_deref(), Some("08P01"));
    // A question inside of the encrypted stream.
    let mut raw = encrypted.knock(&Knock::default()).unwrap();
    raw.send(&TLS_REQUEST);
    assert_eq!(raw.read().map(|reply| reply.sqlstate()).as_deref(), Some("08P01"));
    // No handshake at all.
    let mut raw = encrypted.server.connect();
    raw.send(&[0x16, 3, 1, 0, 5, 1, 2, 3, 4, 5]);
    let mut rest = Vec::new();
    let _ = raw.stream.read_to_end(&mut rest);
    assert!(
        rest.first().is_none_or(|first| *first == 0x15),
        "an alert of TLS or nothing: {rest:?}"
    );
}

/// The answer to a login by SCRAM under this binding.
fn log_in(encrypted: &Encrypted, mechanism: &str, binding: ChannelBinding) -> Result<(), Reply> {
    let mut raw = encrypted.knock(&Knock::default()).unwrap();
    raw.send(&startup(&[("user", "ann")]));
    let offered = raw.read().unwrap();
    assert_eq!(offered.body[4..], *b"SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0");
    let mut exchange = ScramSha256::new(PASSWORD.as_bytes(), binding);
    let length = (exchange.message().len() as u32).to_be_bytes();
    let first = [mechanism.as_bytes(), b"\0", &length, exchange.message()].concat();
    raw.send(&message(b'p', &first));
    let reply = raw.read().unwrap();
    if reply.kind == b'E' {
        return Err(reply);
    }
    exchange.update(&reply.body[4..]).unwrap();
    raw.send(&message(b'p', exchange.message()));
    let reply = raw.read().unwrap();
    match reply.kind {
        b'E' => Err(reply),
        _ => {
            exchange.finish(&reply.body[4..]).unwrap();
            Ok(())
        }
    }
}

#[test]
fn a_login_is_bound_to_the_certificate() {
    let encrypted = encrypted("hostssl all all all scram-sha-256");
    let certificate = CertificateDer::from_pem_file(&encrypted.options.certificate).unwrap();
    let hash = ring::digest::digest(&ring::digest::SHA256, &certificate)
        .as_ref()
        .to_vec();
    let plus = "SCRAM-SHA-256-PLUS";
    assert!(
        log_in(
            &encrypted,
            plus,
            ChannelBinding::tls_server_end_point(hash.clone())
        )
        .is_ok()
    );
    assert!(log_in(&encrypted, "SCRAM-SHA-256", ChannelBinding::unsupported()).is_ok());
    let refused = |mechanism, binding| {
        let reply = log_in(&encrypted, mechanism, binding).unwrap_err();
        (reply.sqlstate(), reply.field(b'M').unwrap())
    };
    // A machine in the middle has a certificate of its own.
    let other = ChannelBinding::tls_server_end_point(vec![7; hash.len()]);
    let (state, text) = refused(plus, other);
    assert_eq!(state, "08P01");
    assert!(text.contains("channel-binding"), "{text}");
    // It has taken PLUS off the list.
    let (state, text) = refused("SCRAM-SHA-256", ChannelBinding::unrequested());
    assert_eq!(
        (state.as_str(), text.as_str()),
        ("28000", "SCRAM channel binding negotiation error")
    );
    let (state, _) = refused(plus, ChannelBinding::unsupported());
    assert_eq!(state, "08P01");
}

#[test]
fn rules_ask_for_encryption_and_for_certificates() {
    let encrypted = encrypted(
        "hostnossl all bob all reject\nhostssl all ann all cert\nhostssl postgres bob all trust clientcert=verify-ca",
    );
    let with = |certificate| Knock {
        certificate: Some(certificate),
        ..Knock::default()
    };
    let stranger = Authority::new(encrypted.server.directory.path(), "stranger");
    let (ann, bob) = (encrypted.authority.sign("ann"), encrypted.authority.sign("bob"));
    let none = "connection requires a valid client certificate";
    for (knock, user, expected) in [
        (with(ann.clone()), "ann", "in"),
        (
            with(bob),
            "ann",
            "certificate authentication failed for user \"ann\"",
        ),
        (Knock::default(), "ann", none),
        (with(stranger.sign("ann")), "ann", "no handshake"),
        (with(ann), "bob", "in"),
        (Knock::default(), "bob", none),
    ] {
        assert_eq!(
            encrypted.outcome(&knock, user),
            expected,
            "{user}, {:?}",
            knock.certificate
        );
    }
    let mut raw = encrypted.server.connect();
    raw.send(&startup(&[("user", "bob")]));
    let text = raw.read().unwrap().field(b'M').unwrap();
    assert!(text.ends_with("database \"postgres\", no encryption"), "{text}");
}

/// Half of a new pair changes nothing; the whole pair holds from the next connection on, and no session ends.
#[test]
fn new_files_hold_from_the_next_connection_on() {
    let encrypted = encrypted("host all all all trust");
    let shown = || {
        let raw = encrypted.knock(&Knock::default()).unwrap();
        raw.stream.conn.peer_certificates().unwrap()[0].to_vec()
    };
    let mut session = encrypted.knock(&Knock::default()).unwrap();
    session.start(&[("user", "ann")]);
    let old = shown();
    let (certificate, key) = encrypted.authority.sign("renewed");
    std::fs::copy(&certificate, &encrypted.options.certificate).unwrap();
    assert_eq!(shown(), old);
    std::fs::copy(&key, &encrypted.options.key).unwrap();
    let new = CertificateDer::from_pem_file(&certificate).unwrap();
    assert_eq!(shown(), new.to_vec());
    std::fs::write(&encrypted.options.key, "no key").unwrap();
    assert_eq!(shown(), new.to_vec());
    assert_eq!(session.value("select 1"), "1");
}

/// A statement is cancelled while its client does not read: what the client reads then are whole messages.
#[test]
fn messages_stay_whole_where_a_client_reads_late() {
    let encrypted = encrypted("host all all all trust");
    let mut raw = encrypted.knock(&Knock::default()).unwrap();
    let greeting = raw.start(&[("user", "ann")]);
    for _ in 0..3 {
        raw.send(&query(
            "select n, repeat('z', 3000) from generate_series(1, 1000000) n",
        ));
        std::thread::sleep(Duration::from_millis(300));
        encrypted.server.cancel(&greeting);
        let replies = raw.until_ready();
        let (last, rows) = replies[1..]
            .split_last()
            .map(|(_, rows)| rows)
            .and_then(<[_]>::split_last)
            .unwrap();
        assert_eq!(last.sqlstate(), "57014");
        for (row, number) in rows.iter().zip(1..) {
            assert_eq!(row.values()[0].as_deref(), Some(number.to_string().as_str()));
        }
        assert_eq!(raw.value("select 'still here'"), "still here");
    }
    // A message of which a part has left, in the midst of a record.
    raw.send(&query("select repeat('z', 24000000)"));
    wait_for("the server to wait for its client", || {
        let activity = encrypted.server.engine.activity();
        let waits = |s: &SessionActivity| s.wait_event == Some("ClientWrite") && s.query.contains("24000000");
        activity.iter().any(waits)
    });
    encrypted.server.cancel(&greeting);
    let replies = raw.until_ready();
    assert_eq!(kinds(&replies), "TDEZ");
    assert_eq!(replies[2].sqlstate(), "57014");
    let value = &replies[1].values()[0];
    assert!(value.as_deref() == Some("z".repeat(24_000_000).as_str()));
    assert_eq!(raw.value("select 'still here'"), "still here");
}

/// Two statements in one record, of which the first fills the buffer of the session's reader: the second shows in no poll.
#[test]
fn the_rest_of_a_record_is_read_before_the_socket() {
    let encrypted = encrypted("host all all all trust");
    for versions in [TWELVE, THIRTEEN] {
        let knock = Knock {
            versions,
            ..Knock::default()
        };
        let mut raw = encrypted.knock(&knock).unwrap();
        raw.start(&[("user", "ann")]);
        raw.query("listen a");
        for bytes in [1 << 10, 4 << 10, 8 << 10, 12 << 10] {
            let first = query(&format!("{:1$}", "select 'first'", bytes - query("").len()));
            assert_eq!(first.len(), bytes);
            raw.send(&[first, query("select 'second'")].concat());
            for expected in ["first", "second"] {
                let replies = raw.until_ready();
                let row = replies.iter().find(|reply| reply.kind == b'D').unwrap();
                assert_eq!(row.values(), [Some(expected.to_owned())], "{bytes} bytes");
            }
        }
    }
}

/// Sends a record without application data.
fn send_new_keys(raw: &mut Raw<Stream>) {
    raw.stream.conn.refresh_traffic_keys().unwrap();
    raw.stream.flush().unwrap();
}

/// A record that changes keys is no statement: a session that read on for one would not hear what it listens for.
#[test]
fn new_keys_do_not_hold_notifications_back() {
    let encrypted = encrypted("host all all all trust");
    let knock = Knock {
        versions: THIRTEEN,
        ..Knock::default()
    };
    let mut ann = encrypted.knock(&knock).unwrap();
    ann.start(&[("user", "ann")]);
    ann.query("listen a");
    let mut bob = encrypted.knock(&Knock::default()).unwrap();
    bob.start(&[("user", "bob")]);
    for round in 0..5 {
        send_new_keys(&mut ann);
        // Into the poll, or while the session is about to begin it.
        std::thread::sleep(Duration::from_millis(20 * (round % 2)));
        bob.query(&format!("notify a, '{round}'"));
        let told = ann.read().unwrap();
        assert_eq!(
            (told.kind, &told.body[4..]),
            (b'A', format!("a\0{round}\0").as_bytes())
        );
        assert_eq!(ann.value("select 'heard'"), "heard");
    }
}

/// The same of a session that sends the log.
#[test]
fn new_keys_do_not_hold_the_log_back() {
    let encrypted = encrypted("host all all all trust\nhost replication all all trust");
    let knock = Knock {
        versions: THIRTEEN,
        ..Knock::default()
    };
    let mut follower = encrypted.knock(&knock).unwrap();
    follower.start(&[
        ("user", "ann"),
        ("replication", "true"),
        ("database", "replication"),
    ]);
    let end = follower.rows("IDENTIFY_SYSTEM")[0][2].clone().unwrap();
    follower.send(&query(&format!("START_REPLICATION {end}")));
    assert_eq!(follower.read().map(|reply| reply.kind), Some(b'W'));
    let mut ann = encrypted.knock(&Knock::default()).unwrap();
    ann.start(&[("user", "ann")]);
    for round in 0..3 {
        send_new_keys(&mut follower);
        std::thread::sleep(Duration::from_millis(20));
        ann.query(&format!("create table t{round} (i int)"));
        // Log, and not only a question whether the follower is there.
        while follower.read().expect("the stream goes on").body[0] != b'w' {}
    }
}

#[test]
fn files_that_cannot_be_used_are_told_before_the_server_runs() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let authority = Authority::new(directory.path(), "authority");
    let (certificate, key) = authority.sign("server");
    let (other, other_key) = authority.sign("other");
    let open = authority.sign("open");
    std::fs::set_permissions(&open.1, std::fs::Permissions::from_mode(0o644)).unwrap();
    for (certificate, key, authorities, expected) in [
        (&other, &key, None, "cannot be used"),
        (
            &certificate,
            &directory.path().join("missing"),
            None,
            "cannot read",
        ),
        (&other_key, &other_key, None, "has no certificate"),
        (&certificate, &certificate, None, "may be read by"),
        (&open.0, &open.1, None, "chmod 0600"),
        (&certificate, &key, Some(key.clone()), "has no certificate"),
    ] {
        let options = clearway_server::ServerOptions {
            listen: Some("127.0.0.1:0".to_owned()),
            tls: Some(TlsOptions {
                certificate: certificate.clone(),
                key: key.clone(),
                authorities,
                only_1_3: false,
            }),
            ..clearway_server::ServerOptions::default()
        };
        let error = clearway_server::Server::bind_early(options)
            .unwrap_err()
            .to_string();
        assert!(error.contains(expected), "{expected}: {error}");
    }
}

/// The connection of a standby: encrypted, to the right server, and bound to its certificate.
#[test]
fn a_standby_makes_sure_of_its_primary() {
    let encrypted =
        encrypted("hostssl replication ann all scram-sha-256\nhostnossl replication bob all trust");
    let stranger = Authority::new(encrypted.server.directory.path(), "stranger");
    let root = encrypted.authority.root();
    let (root, stranger) = (root.display(), stranger.root());
    let stop = StopSignal::new().unwrap();
    let connect = |words: &str| {
        let port = encrypted.server.address.port();
        let info = format!("port={port} {words}")
            .parse()
            .map_err(|error| format!("{error}"))?;
        let client = Client::connect(&info, PATIENCE, &stop);
        client.map(drop).map_err(|error| error.to_string())
    };
    let full =
        format!("host=localhost user=ann password='{PASSWORD}' sslmode=verify-full sslrootcert={root}");
    for (words, expected) in [
        (full.clone(), ""),
        (format!("{full} channel_binding=require"), ""),
        (format!("{full} channel_binding=disable"), ""),
        (full.replace("localhost", "127.0.0.1"), ""),
        (full.replace("localhost", "127.0.0.2"), "not valid for name"),
        (
            full.replace("localhost", "127.0.0.2")
                .replace("verify-full", "verify-ca"),
            "",
        ),
        (
            full.replace(&root.to_string(), &stranger.display().to_string()),
            "UnknownIssuer",
        ),
        (format!("host=localhost user=ann password='{PASSWORD}'"), ""),
        (
            format!("host=localhost user=ann password='{PASSWORD}' sslmode=disable"),
            "no encryption",
        ),
        (full.replace(PASSWORD, "wrong"), "password authentication failed"),
        ("host=localhost user=bob sslmode=disable".to_owned(), ""),
        (
            "host=localhost user=bob sslmode=disable channel_binding=require".to_owned(),
            "was not bound",
        ),
        ("host=localhost sslmode=verify-ca".to_owned(), "needs sslrootcert"),
        ("host=192.0.2.1 sslmode=prefer".to_owned(), "has to be encrypted"),
    ] {
        match connect(&words) {
            Ok(()) => assert_eq!(expected, "", "{words}"),
            Err(error) => assert!(
                !expected.is_empty() && error.contains(expected),
                "{words}: {error}"
            ),
        }
    }
}
