//! tokio-postgres over TLS: it knows the server by its certificate, and its login is bound to that.

mod support;

use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use support::encrypted::{Encrypted, PASSWORD, encrypted};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Config;
use tokio_postgres::config::{ChannelBinding as Binding, SslMode, SslNegotiation};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client;

type Failure = Box<dyn Error + Send + Sync>;

/// Makes a connection encrypted, as an application with rustls does.
#[derive(Clone)]
struct Encrypting {
    connector: TlsConnector,
    name: Option<ServerName<'static>>,
}

impl Encrypting {
    /// Trusts an authority.
    fn new(authority: &std::path::Path) -> Encrypting {
        let mut roots = RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_file(authority).unwrap())
            .unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"postgresql".to_vec()];
        Encrypting {
            connector: Arc::new(config).into(),
            name: None,
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> MakeTlsConnect<S> for Encrypting {
    type Stream = EncryptedStream<S>;
    type TlsConnect = Encrypting;
    type Error = Failure;

    fn make_tls_connect(&mut self, domain: &str) -> Result<Encrypting, Failure> {
        Ok(Encrypting {
            name: Some(ServerName::try_from(domain.to_owned())?),
            ..self.clone()
        })
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> TlsConnect<S> for Encrypting {
    type Stream = EncryptedStream<S>;
    type Error = Failure;
    type Future = Pin<Box<dyn Future<Output = Result<EncryptedStream<S>, Failure>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move {
            let name = self.name.ok_or("no name of a host")?;
            Ok(EncryptedStream(self.connector.connect(name, stream).await?))
        })
    }
}

struct EncryptedStream<S>(client::TlsStream<S>);

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for EncryptedStream<S> {
    fn channel_binding(&self) -> ChannelBinding {
        let certificates = self.0.get_ref().1.peer_certificates();
        match certificates.and_then(<[_]>::first) {
            Some(certificate) => {
                let hash = ring::digest::digest(&ring::digest::SHA256, certificate);
                ChannelBinding::tls_server_end_point(hash.as_ref().to_vec())
            }
            None => ChannelBinding::none(),
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for EncryptedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for EncryptedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

/// The encryption that the server tells a client of, or the reason why there is no session.
async fn told(encrypted: &Encrypted, tls: Encrypting, negotiation: SslNegotiation) -> Result<String, String> {
    let mut config = Config::new();
    config
        .host("127.0.0.1")
        .port(encrypted.server.address.port())
        .user("ann")
        .password(PASSWORD)
        .dbname("postgres")
        .ssl_mode(SslMode::Require)
        .ssl_negotiation(negotiation)
        .channel_binding(Binding::Require);
    let (client, connection) = config.connect(tls).await.map_err(|error| {
        let source = error.source().map_or_else(String::new, ToString::to_string);
        format!("{error}: {source}")
    })?;
    tokio::spawn(connection);
    let text = "select ssl::text || ' ' || version from pg_stat_ssl where pid = pg_backend_pid()";
    let row = client.query_one(text, &[]).await;
    row.map(|row| row.get(0)).map_err(|error| error.to_string())
}

#[test]
fn the_server_is_known_and_the_login_is_bound_to_it() {
    let encrypted = encrypted("hostssl all all all scram-sha-256");
    let stranger = support::encrypted::Authority::new(encrypted.server.directory.path(), "stranger");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        for negotiation in [SslNegotiation::Postgres, SslNegotiation::Direct] {
            let known = Encrypting::new(&encrypted.authority.root());
            let outcome = told(&encrypted, known, negotiation).await;
            assert_eq!(outcome.as_deref(), Ok("true TLSv1.3"), "{negotiation:?}");
            let unknown = Encrypting::new(&stranger.root());
            let refusal = told(&encrypted, unknown, negotiation).await.unwrap_err();
            assert!(
                refusal.contains("invalid peer certificate"),
                "{negotiation:?}: {refusal}"
            );
        }
    });
}
