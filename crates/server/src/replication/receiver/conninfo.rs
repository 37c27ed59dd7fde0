//! Connection strings, as libpq reads them: words `name=value`, or a URI.
//!
//! ```text
//!   host=127.0.0.1 port=5433 user=alice application_name='the standby'
//!   host=/tmp port=5433                                  a Unix-domain socket: /tmp/.s.PGSQL.5433
//!   postgresql://alice@localhost:5433/postgres?application_name=standby
//!   host=db.example.org user=copy passfile=pass sslmode=verify-full sslrootcert=root.crt channel_binding=require
//! ```
//!
//! A value may have single quotes around it; `\` takes the next character as it is, in quotes or without. Blanks may
//! surround the `=`. In a URI, `%2F` and the like stand for bytes.
//!
//! # Rules
//! 1. A server that is not on this machine is spoken to over TLS alone (`sslmode=require` or more), because the log holds
//!    every row of the database. Names but `localhost` are looked up at each connection.
//! 2. What asks for something that is not there is an error that says so: `sslcrl`. What is about
//!    the same things but does not insist (`gssencmode=prefer`) is accepted, since `pg_basebackup -R` writes it.
//! 3. A name that does not exist is an error.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use super::error::{ReceiverError, Result};
use super::password::{self, Password};
use crate::tls::client::{BindingMode, ClientTls, SslMode};

/// Our servers' usual port, not PostgreSQL's.
const DEFAULT_PORT: u16 = 5433;
/// A database's first role, and its name.
const FIRST_ROLE: &str = "postgres";
/// A standby's default name in `pg_stat_replication`.
const DEFAULT_APPLICATION_NAME: &str = "walreceiver";

/// Names whose value does not change what this program does.
const NO_EFFECT: [&str; 15] = [
    "client_encoding",
    "gssencmode",
    "gsslib",
    "keepalives",
    "keepalives_count",
    "keepalives_idle",
    "keepalives_interval",
    "krbsrvname",
    "replication",
    "sslcompression",
    "sslsni",
    "ssl_max_protocol_version",
    "ssl_min_protocol_version",
    "target_session_attrs",
    "tcp_user_timeout",
];

/// A server's host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Host {
    /// Loopback addresses, to be tried in turn.
    Loopback(Vec<IpAddr>),
    /// Another address, or a name that is looked up.
    Remote(String),
    /// The directory of a Unix-domain socket.
    Directory(PathBuf),
}

/// A server to connect to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnInfo {
    /// The server's host.
    pub host: Host,
    /// The host as it was written, for `pg_stat_wal_receiver`.
    pub host_text: String,
    /// Its port.
    pub port: u16,
    /// The user's name.
    pub user: String,
    /// The database of a session, if one was given. A replication connection is about the whole data directory.
    pub database: Option<String>,
    /// This program's name at the server.
    pub application_name: String,
    /// The time limit for connecting, if one was given.
    pub connect_timeout: Option<Duration>,
    /// The password, if it was given.
    pub password: Option<Password>,
    /// The file of passwords, if one was given.
    pub passfile: Option<PathBuf>,
    /// Encryption.
    pub tls: ClientTls,
}

/// A place to connect to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Address {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Address::Tcp(address) => address.fmt(f),
            Address::Unix(path) => path.display().fmt(f),
        }
    }
}

fn refuse<T>(problem: impl Into<String>) -> Result<T> {
    Err(ReceiverError::ConnInfo(problem.into()))
}

impl FromStr for ConnInfo {
    type Err = ReceiverError;

    fn from_str(text: &str) -> Result<ConnInfo> {
        ConnInfo::of_words(words_of(text)?)
    }
}

/// The words of a connection string of either kind.
fn words_of(text: &str) -> Result<Vec<(String, String)>> {
    let uri = ["postgresql://", "postgres://"]
        .iter()
        .find_map(|scheme| text.trim().strip_prefix(scheme));
    match uri {
        Some(rest) => uri_words(rest),
        None => words(text),
    }
}

/// As `host=… port=…`, with every value that counts but the password, which is not shown.
impl std::fmt::Display for ConnInfo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let quoted = |value: &str| {
            let plain = !value.is_empty() && !value.contains([' ', '\'', '\\', '\t', '\n']);
            match plain {
                true => value.to_owned(),
                false => format!("'{}'", value.replace('\\', "\\\\").replace('\'', "\\'")),
            }
        };
        write!(
            f,
            "host={} port={} user={} application_name={}",
            quoted(&self.host_text),
            self.port,
            quoted(&self.user),
            quoted(&self.application_name)
        )?;
        if let Some(file) = &self.passfile {
            write!(f, " passfile={}", quoted(&file.to_string_lossy()))?;
        }
        for (name, value) in self.tls.words() {
            write!(f, " {name}={}", quoted(&value))?;
        }
        Ok(())
    }
}

/// libpq's variables of the environment that a program obeys, and the names in a connection string.
const VARIABLES: [(&str, &str); 8] = [
    ("PGHOST", "host"),
    ("PGPORT", "port"),
    ("PGUSER", "user"),
    ("PGDATABASE", "dbname"),
    ("PGPASSWORD", "password"),
    ("PGPASSFILE", "passfile"),
    ("PGSSLMODE", "sslmode"),
    ("PGSSLROOTCERT", "sslrootcert"),
];

impl ConnInfo {
    /// The server that a program of this name is told to connect to: by a connection string, which may be empty; by the
    /// `environment`'s variables, as libpq has them, for what that leaves out; and else the server on this machine, as
    /// its first role.
    ///
    /// # Errors
    /// As those of a connection string that has it all.
    pub fn of_program(
        text: &str,
        program: &str,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<ConnInfo> {
        let defaults = [
            ("host", "127.0.0.1"),
            ("user", FIRST_ROLE),
            ("dbname", FIRST_ROLE),
            ("fallback_application_name", program),
        ];
        let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        let mut all: Vec<_> = defaults.into_iter().map(owned).collect();
        let given = VARIABLES
            .iter()
            .filter_map(|(variable, name)| Some(((*name).to_owned(), environment(variable)?)));
        all.extend(given);
        all.extend(words_of(text)?);
        ConnInfo::of_words(all)
    }

    /// The last of several values of one name counts, as with libpq.
    fn of_words(words: Vec<(String, String)>) -> Result<ConnInfo> {
        let mut host = None;
        let mut host_address = None;
        let mut info = ConnInfo {
            host: Host::Loopback(Vec::new()),
            host_text: String::new(),
            port: DEFAULT_PORT,
            user: "clearway".to_owned(),
            database: None,
            application_name: String::new(),
            connect_timeout: None,
            password: None,
            passfile: None,
            tls: ClientTls::default(),
        };
        let (mut certificate, mut key) = (None, None);
        let mut fallback = DEFAULT_APPLICATION_NAME.to_owned();
        for (name, value) in words {
            // An empty value is the default.
            if value.is_empty() {
                continue;
            }
            if value.contains('\0') {
                return refuse(format!("{name} has a zero byte in it"));
            }
            match name.as_str() {
                "host" => host = Some(value),
                "hostaddr" => host_address = Some(value),
                "port" => match value.parse() {
                    Ok(port) if port > 0 => info.port = port,
                    _ => return refuse(format!("\"{value}\" is no port; a port is 1 to 65535")),
                },
                "user" => info.user = value,
                "dbname" => info.database = Some(value),
                "application_name" => info.application_name = value,
                "fallback_application_name" => fallback = value,
                "connect_timeout" => match value.parse::<u32>() {
                    Ok(0) => {}
                    Ok(seconds) => info.connect_timeout = Some(Duration::from_secs(u64::from(seconds))),
                    Err(_) => return refuse(format!("connect_timeout \"{value}\" is no number of seconds")),
                },
                "sslmode" => match SslMode::named(&value) {
                    Some(mode) => info.tls.mode = mode,
                    None => return refuse(format!("invalid sslmode value: \"{value}\"")),
                },
                "channel_binding" => match BindingMode::named(&value) {
                    Some(mode) => info.tls.binding = mode,
                    None => return refuse(format!("invalid channel_binding value: \"{value}\"")),
                },
                "sslrootcert" => info.tls.authorities = Some(value.into()),
                "sslcert" => certificate = Some(value.into()),
                "sslkey" => key = Some(value.into()),
                "sslcrl" | "sslcrldir" => return refuse(format!("\"{name}\" is not supported")),
                "password" => info.password = Some(Password(value)),
                "passfile" => info.passfile = Some(value.into()),
                "options" | "service" => return refuse(format!("\"{name}\" is not supported")),
                known if NO_EFFECT.contains(&known) => {}
                unknown => {
                    return refuse(format!(
                        "\"{unknown}\" is not known; there are host, hostaddr, port, user, dbname, application_name, \
                         connect_timeout, password, passfile, sslmode, sslrootcert, sslcert, sslkey and channel_binding"
                    ));
                }
            }
        }
        if info.application_name.is_empty() {
            info.application_name = fallback;
        }
        let Some(text) = host_address.or(host) else {
            return refuse("it does not say where the server is; write host=127.0.0.1, for example");
        };
        info.tls.certificate = match (certificate, key) {
            (None, None) => None,
            (Some(certificate), Some(key)) => Some((certificate, key)),
            _ => return refuse("sslcert and sslkey go together"),
        };
        if info.tls.mode >= SslMode::VerifyCa && info.tls.authorities.is_none() {
            return refuse(
                "this sslmode needs sslrootcert, the file of those whose word for the server counts",
            );
        }
        info.host = parse_host(&text, info.tls.mode)?;
        info.host_text = text;
        Ok(info)
    }

    /// The password for the server: the one that was given, or that of the file.
    pub(super) fn password(&self, database: &str) -> Result<Option<Password>> {
        match (&self.password, &self.passfile) {
            (Some(password), _) => Ok(Some(password.clone())),
            (None, Some(file)) => password::of_file(
                file,
                [&self.host_text, &self.port.to_string(), database, &self.user],
            )
            .map_err(ReceiverError::ConnInfo),
            (None, None) => Ok(None),
        }
    }

    /// The addresses to try to connect to, in turn.
    pub(crate) fn addresses(&self) -> io::Result<Vec<Address>> {
        Ok(match &self.host {
            Host::Loopback(addresses) => addresses
                .iter()
                .map(|address| Address::Tcp(SocketAddr::new(*address, self.port)))
                .collect(),
            Host::Remote(name) => (name.as_str(), self.port)
                .to_socket_addrs()?
                .map(Address::Tcp)
                .collect(),
            Host::Directory(path) => vec![Address::Unix(path.join(format!(".s.PGSQL.{}", self.port)))],
        })
    }
}

/// Rule 1.
fn parse_host(text: &str, mode: SslMode) -> Result<Host> {
    if text.starts_with('/') {
        return Ok(Host::Directory(text.into()));
    }
    if text.contains(',') {
        return refuse("more than one host is not supported");
    }
    if text == "localhost" {
        return Ok(Host::Loopback(vec![
            Ipv4Addr::LOCALHOST.into(),
            Ipv6Addr::LOCALHOST.into(),
        ]));
    }
    match text.parse::<IpAddr>() {
        Ok(address) if address.to_canonical().is_loopback() => Ok(Host::Loopback(vec![address])),
        _ if mode >= SslMode::Require => Ok(Host::Remote(text.to_owned())),
        _ => refuse(format!(
            "host \"{text}\" is not on this machine, so the connection has to be encrypted: give sslmode=verify-full and \
             sslrootcert, the file of those whose word for the server counts (a copy of its server.crt, if it is signed by \
             itself)"
        )),
    }
}

/// `name = value …`.
fn words(text: &str) -> Result<Vec<(String, String)>> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let end = rest
            .find(|c: char| c == '=' || c.is_ascii_whitespace())
            .unwrap_or(rest.len());
        let name = &rest[..end];
        let Some(after) = rest[end..].trim_start().strip_prefix('=') else {
            return refuse(format!("there is no \"=\" after \"{name}\""));
        };
        if name.is_empty() {
            return refuse("there is no name before \"=\"");
        }
        let (value, after) = value(after.trim_start())?;
        words.push((name.to_owned(), value));
        rest = after.trim_start();
    }
    Ok(words)
}

/// A value, and what follows it.
fn value(text: &str) -> Result<(String, &str)> {
    let quoted = text.starts_with('\'');
    let mut value = String::new();
    let mut characters = text.char_indices().skip(usize::from(quoted));
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => value.extend(characters.next().map(|(_, next)| next)),
            '\'' if quoted => return Ok((value, &text[at + 1..])),
            blank if !quoted && blank.is_ascii_whitespace() => return Ok((value, &text[at..])),
            other => value.push(other),
        }
    }
    match quoted {
        true => refuse(format!("the quote in {text} is not closed")),
        false => Ok((value, "")),
    }
}

/// The words behind `postgresql://`: `[user[:password]@][host][:port][/dbname][?name=value[&…]]`.
fn uri_words(text: &str) -> Result<Vec<(String, String)>> {
    let mut words = Vec::new();
    let mut add = |name: &str, value: &str| -> Result<()> {
        words.push((name.to_owned(), decoded(value)?));
        Ok(())
    };
    let (text, parameters) = text.split_once('?').unwrap_or((text, ""));
    let (authority, database) = text.split_once('/').unwrap_or((text, ""));
    add("dbname", database)?;
    let (user, place) = match authority.rsplit_once('@') {
        Some((user, place)) => (user, place),
        None => ("", authority),
    };
    let (user, password) = user.split_once(':').unwrap_or((user, ""));
    add("user", user)?;
    add("password", password)?;
    let (host, port) = match place.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((host, port)) => (host, port.strip_prefix(':').unwrap_or(port)),
            None => return refuse("there is no \"]\" after the address"),
        },
        None => place.split_once(':').unwrap_or((place, "")),
    };
    add("host", host)?;
    add("port", port)?;
    for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
        match parameter.split_once('=') {
            Some((name, value)) => add(&decoded(name)?, value)?,
            None => return refuse(format!("there is no \"=\" after \"{parameter}\"")),
        }
    }
    Ok(words)
}

/// `%2F` is a slash.
fn decoded(text: &str) -> Result<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        if first != b'%' {
            bytes.push(first);
            continue;
        }
        let digit = |at: usize| rest.get(at).and_then(|digit| char::from(*digit).to_digit(16));
        let (Some(high), Some(low)) = (digit(0), digit(1)) else {
            return refuse(format!(
                "\"%\" in \"{text}\" is not followed by two hexadecimal digits"
            ));
        };
        bytes.push((high * 16 + low) as u8);
        rest = &rest[2..];
    }
    String::from_utf8(bytes).or_else(|_| refuse(format!("\"{text}\" is not UTF-8")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> ConnInfo {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn refused(text: &str) -> String {
        text.parse::<ConnInfo>().unwrap_err().to_string()
    }

    #[test]
    fn a_program_asks_the_environment_for_what_it_is_not_told() {
        let none = |_: &str| None;
        let info = ConnInfo::of_program("", "top", none).unwrap();
        assert_eq!(info.addresses().unwrap()[0].to_string(), "127.0.0.1:5433");
        assert_eq!(
            (info.user.as_str(), info.database.as_deref()),
            ("postgres", Some("postgres"))
        );
        assert_eq!(info.application_name, "top");
        let environment = |name: &str| match name {
            "PGHOST" => Some("/tmp".to_owned()),
            "PGPORT" => Some("5444".to_owned()),
            "PGUSER" => Some("alice".to_owned()),
            _ => None,
        };
        let info = ConnInfo::of_program("user=bob", "top", environment).unwrap();
        assert_eq!(
            info.addresses().unwrap(),
            [Address::Unix("/tmp/.s.PGSQL.5444".into())]
        );
        assert_eq!(info.user, "bob");
        let info = ConnInfo::of_program("postgresql://carol@localhost/shop", "top", environment).unwrap();
        assert_eq!((info.user.as_str(), info.port), ("carol", 5_444));
        assert_eq!(info.database.as_deref(), Some("shop"));
        let refused = ConnInfo::of_program("port=no", "top", none).unwrap_err();
        assert!(refused.to_string().contains("\"no\" is no port"), "{refused}");
    }

    #[test]
    fn words_are_read_as_libpq_does() {
        let info =
            parsed(r" host=127.0.0.1  port = 5444 user='a \'b\\' application_name = x\ y sslmode=prefer ");
        assert_eq!(
            (info.user.as_str(), info.application_name.as_str()),
            (r"a 'b\", "x y")
        );
        assert_eq!(info.addresses().unwrap()[0].to_string(), "127.0.0.1:5444");
        assert_eq!(parsed(&info.to_string()), info);
        let info = parsed("host=/tmp");
        assert_eq!(
            info.addresses().unwrap(),
            [Address::Unix("/tmp/.s.PGSQL.5433".into())]
        );
        assert_eq!(
            (info.user.as_str(), info.application_name.as_str()),
            ("clearway", "walreceiver")
        );
        let info = parsed("host=localhost fallback_application_name=standby connect_timeout=3 port=''");
        assert_eq!(info.addresses().unwrap().len(), 2);
        assert_eq!(info.application_name, "standby");
        assert_eq!(info.connect_timeout, Some(Duration::from_secs(3)));
        assert_eq!(
            parsed("host=::1").addresses().unwrap()[0].to_string(),
            "[::1]:5433"
        );
        let info = parsed(
            "host=db.example.org sslmode=verify-full sslrootcert='/a b/root.crt' sslcert=c.crt sslkey=c.key \
             channel_binding=require",
        );
        assert_eq!(info.host, Host::Remote("db.example.org".to_owned()));
        assert_eq!(parsed(&info.to_string()), info);
        // What pg_basebackup -R writes.
        parsed(
            "user=postgres passfile='/home/x/.pgpass' channel_binding=prefer host=127.0.0.1 port=5433 sslmode=prefer \
             sslcompression=0 sslsni=1 ssl_min_protocol_version=TLSv1.2 gssencmode=prefer krbsrvname=postgres \
             target_session_attrs=any",
        );
    }

    #[test]
    fn uris_are_read() {
        let info =
            parsed("postgresql://al%20ice@[::1]:5444/postgres?application_name=a%26b&connect_timeout=0");
        assert_eq!(
            (info.user.as_str(), info.application_name.as_str()),
            ("al ice", "a&b")
        );
        assert_eq!(info.addresses().unwrap()[0].to_string(), "[::1]:5444");
        assert_eq!(info.connect_timeout, None);
        let info = parsed("postgres://%2Fvar%2Frun");
        assert_eq!(info.host, Host::Directory("/var/run".into()));
        assert_eq!(
            parsed("postgresql:///db?host=/tmp").host,
            Host::Directory("/tmp".into())
        );
        for (text, problem) in [
            ("postgresql://[::1", "\"]\""),
            ("postgresql://localhost:0", "is no port"),
            ("postgresql://localhost?x", "no \"=\""),
            ("postgresql://%zz", "hexadecimal"),
            ("postgresql://%ff", "UTF-8"),
            ("postgresql://", "where the server is"),
        ] {
            assert!(refused(text).contains(problem), "{text}: {}", refused(text));
        }
    }

    #[test]
    fn what_is_not_possible_is_said() {
        for (text, problem) in [
            ("", "where the server is"),
            ("host", "no \"=\""),
            ("host=127.0.0.1 =x", "no name"),
            ("host='127.0.0.1", "not closed"),
            ("host=127.0.0.1 port=70000", "is no port"),
            ("host=127.0.0.1 sslmode=always", "invalid sslmode"),
            ("host=127.0.0.1 sslmode=verify-ca", "needs sslrootcert"),
            ("host=127.0.0.1 sslcert=a.crt", "go together"),
            ("host=127.0.0.1 channel_binding=1", "invalid channel_binding"),
            ("host=127.0.0.1 sslcrl=a.crl", "not supported"),
            ("host=127.0.0.1 hots=x", "is not known"),
            ("host=127.0.0.1 connect_timeout=soon", "no number"),
            ("host=127.0.0.1,::1", "more than one"),
            ("host=192.168.0.1", "not on this machine"),
            ("host=example.org", "sslmode=verify-full"),
            ("hostaddr=10.0.0.1 host=localhost", "not on this machine"),
            ("host=localhost options=-cx=y", "not supported"),
            ("host=local\0host", "zero byte"),
        ] {
            assert!(refused(text).contains(problem), "{text}: {}", refused(text));
        }
    }

    #[test]
    fn no_text_panics() {
        let whole = r"host='é\'' port = 1 postgresql://%2F@[::1]:1/é?a=%C3%A9&b=c";
        for (from, _) in whole.char_indices() {
            for put in ["", "'", "\\", "=", "%", "é", "[", "@"] {
                let _ = format!("{put}{}", &whole[from..]).parse::<ConnInfo>();
                let _ = format!("{}{put}{}", &whole[..from], &whole[from..]).parse::<ConnInfo>();
                let _ = format!("postgresql://{}{put}", &whole[..from]).parse::<ConnInfo>();
            }
        }
    }
}
