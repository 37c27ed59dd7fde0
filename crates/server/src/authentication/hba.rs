//! `pg_hba.conf`: who may connect from where, and how it has to prove who it is.
//!
//! The file is PostgreSQL's: a rule a line, and the first that fits a connection counts. If none fits, the connection is
//! refused. A file that is not understood, be it a word of one line, is an error with the line's number, and no rule of it
//! holds.
//!
//! | field | here |
//! | --- | --- |
//! | type | `local`, `host`, `hostssl`, `hostnossl` |
//! | database | `all`, `sameuser`, `samerole` (`samegroup`), `replication`, names |
//! | user | `all`, names, `+role` for its members |
//! | address | `all`, `samehost`, an address with `/bits`, or address and mask |
//! | method | `trust`, `reject`, `scram-sha-256`, `peer` (of `local` alone), `cert` (of `hostssl` alone) |
//! | option | `clientcert=verify-ca` or `verify-full` (of `hostssl` alone) |
//!
//! `samehost` is a client whose address is loopback's, or the one at which it has reached the server.
//!
//! Words in quotes have no meaning of their own: `"all"` is a name. Behind `#` is a remark; a line that ends with `\` goes on.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use clearway_engine::{LoginRule, LoginRuleLine};

/// A line that is not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of pg_hba.conf: {what}")]
pub struct HbaError {
    /// Its number, from 1.
    pub line: u32,
    /// The fault.
    pub what: String,
}

/// A way in which a client proves who it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Not at all.
    Trust,
    /// It is refused.
    Reject,
    /// By its password.
    Scram,
    /// By the user of its process, which the kernel knows.
    Peer,
    /// By a certificate that names it.
    Cert,
}

/// A certificate that a client has to show beside its proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientCertificate {
    /// None.
    NotNeeded,
    /// One that an authority has vouched for.
    Verified,
    /// The same, with the user's name as its common name.
    OfUser,
}

/// A rule's answer: how a client proves who it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Demand {
    /// The method.
    pub method: Method,
    /// The certificate.
    pub certificate: ClientCertificate,
}

/// The connections that a rule is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Local,
    Host,
    HostSsl,
    HostNoSsl,
}

/// A word of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Word {
    text: String,
    quoted: bool,
}

impl Word {
    /// True if it is this word, with the meaning that it has.
    fn is(&self, word: &str) -> bool {
        !self.quoted && self.text == word
    }
}

/// The addresses that a rule is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Addresses {
    All,
    SameHost,
    Network(IpAddr, u8),
}

/// A rule.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Rule {
    line: u32,
    kind: Kind,
    databases: Vec<Word>,
    users: Vec<Word>,
    addresses: Addresses,
    demand: Demand,
}

/// A connection as rules look at it.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The client's address; absent for a Unix-domain socket.
    pub address: Option<IpAddr>,
    /// The address at which it has reached the server; absent for a Unix-domain socket.
    pub own_address: Option<IpAddr>,
    /// True if the connection is encrypted.
    pub encrypted: bool,
    /// The database; absent for a connection that copies the log.
    pub database: Option<&'a str>,
    /// The user.
    pub user: &'a str,
}

/// The rules, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules(Vec<Rule>);

impl Default for Rules {
    /// Those of a directory without a file: what reaches the server is on this machine, and trusted.
    fn default() -> Rules {
        let all = || {
            vec![Word {
                text: "all".to_owned(),
                quoted: false,
            }]
        };
        let rule = |kind, addresses| Rule {
            line: 0,
            kind,
            databases: vec![
                all().remove(0),
                Word {
                    text: "replication".to_owned(),
                    quoted: false,
                },
            ],
            users: all(),
            addresses,
            demand: Demand {
                method: Method::Trust,
                certificate: ClientCertificate::NotNeeded,
            },
        };
        Rules(vec![
            rule(Kind::Local, Addresses::All),
            rule(Kind::Host, Addresses::SameHost),
        ])
    }
}

impl Rules {
    /// Reads a file.
    pub fn parse(text: &str) -> Result<Rules, HbaError> {
        let lines = Rule::lines(text).into_iter();
        let rules = lines.map(|(line, rule)| rule.map_err(|what| HbaError { line, what }));
        rules.collect::<Result<_, _>>().map(Rules)
    }

    /// The lines of a file, for `pg_hba_file_rules`.
    pub fn listed(text: &str) -> Vec<LoginRuleLine> {
        let lines = Rule::lines(text).into_iter();
        lines
            .map(|(line, rule)| (line, rule.map(|rule| rule.listed())))
            .collect()
    }

    /// The demand of the first rule that fits; `is_member` tells if the user is a member of a role.
    pub fn demand(&self, asked: &Asked<'_>, is_member: impl Fn(&str) -> bool) -> Option<Demand> {
        let mut rules = self.0.iter();
        let found = rules.find(|rule| rule.fits(asked, &is_member));
        found.map(|rule| rule.demand)
    }

    /// True if a rule lets a client in over TCP without a proof.
    pub fn trusts_over_tcp(&self) -> bool {
        self.0
            .iter()
            .any(|rule| rule.kind != Kind::Local && rule.demand.method == Method::Trust)
    }

    /// True if a rule wants a certificate of a client.
    pub fn wants_certificates(&self) -> bool {
        let mut rules = self.0.iter();
        rules.any(|rule| rule.demand.certificate != ClientCertificate::NotNeeded)
    }
}

/// The fields of a line, each a list of words.
fn fields(line: &str) -> Result<Vec<Vec<Word>>, String> {
    let mut fields: Vec<Vec<Word>> = Vec::new();
    let mut characters = line.chars().peekable();
    let mut continues = false;
    loop {
        while characters.next_if(|c| c.is_whitespace()).is_some() {}
        match characters.peek() {
            None | Some('#') => break,
            Some(',') => {
                characters.next();
                continues = true;
                continue;
            }
            Some(_) => {}
        }
        let mut word = Word {
            text: String::new(),
            quoted: false,
        };
        while let Some(c) = characters.next_if(|c| !c.is_whitespace() && !matches!(c, ',' | '#')) {
            if c != '"' {
                word.text.push(c);
                continue;
            }
            word.quoted = true;
            loop {
                match characters.next() {
                    None => return Err("a quoted word without its end".to_owned()),
                    Some('"') => break,
                    Some(other) => word.text.push(other),
                }
            }
        }
        let ends_with_comma = characters.next_if(|c| *c == ',').is_some();
        match fields.last_mut().filter(|_| continues) {
            Some(field) => field.push(word),
            None => fields.push(vec![word]),
        }
        continues = ends_with_comma;
    }
    Ok(fields)
}

impl Rule {
    /// The lines that are no remark, with their numbers: a rule each, or the fault.
    fn lines(text: &str) -> Vec<(u32, Result<Rule, String>)> {
        let mut rules = Vec::new();
        let mut lines = text.lines().zip(1..);
        while let Some((line, number)) = lines.next() {
            let mut whole = line.to_owned();
            while whole.ends_with('\\') {
                whole.pop();
                let Some((more, _)) = lines.next() else { break };
                whole.push_str(more);
            }
            match fields(&whole) {
                Ok(fields) if fields.is_empty() => {}
                Ok(fields) => rules.push((number, Rule::of(&fields, number))),
                Err(what) => rules.push((number, Err(what))),
            }
        }
        rules
    }

    /// It in PostgreSQL's words.
    fn listed(&self) -> LoginRule {
        let words = |words: &[Word]| words.iter().map(|word| word.text.clone()).collect();
        let (address, mask) = match self.addresses {
            _ if self.kind == Kind::Local => (None, None),
            Addresses::All => (Some("all".to_owned()), None),
            Addresses::SameHost => (Some("samehost".to_owned()), None),
            Addresses::Network(network, bits) => (
                Some(network.to_string()),
                Some(mask_of(network, bits).to_string()),
            ),
        };
        let option = match self.demand.certificate {
            ClientCertificate::NotNeeded => None,
            ClientCertificate::Verified => Some("clientcert=verify-ca"),
            ClientCertificate::OfUser => Some("clientcert=verify-full"),
        };
        LoginRule {
            kind: match self.kind {
                Kind::Local => "local",
                Kind::Host => "host",
                Kind::HostSsl => "hostssl",
                Kind::HostNoSsl => "hostnossl",
            },
            databases: words(&self.databases),
            users: words(&self.users),
            address,
            mask,
            method: match self.demand.method {
                Method::Trust => "trust",
                Method::Reject => "reject",
                Method::Scram => "scram-sha-256",
                Method::Peer => "peer",
                Method::Cert => "cert",
            },
            options: option.into_iter().map(str::to_owned).collect(),
        }
    }

    fn of(fields: &[Vec<Word>], line: u32) -> Result<Rule, String> {
        let mut fields = fields.iter();
        let mut next = |what: &str| {
            fields
                .next()
                .ok_or_else(|| format!("the end comes before {what}"))
        };
        let kind = match single(next("the connection type")?)?.as_str() {
            "local" => Kind::Local,
            "host" => Kind::Host,
            "hostssl" => Kind::HostSsl,
            "hostnossl" => Kind::HostNoSsl,
            other => return Err(format!("invalid connection type \"{other}\"")),
        };
        let databases = next("the databases")?.clone();
        let users = next("the users")?.clone();
        for word in databases.iter().chain(&users) {
            if !word.quoted && word.text.starts_with(['@', '/']) {
                return Err(format!(
                    "\"{}\": files and regular expressions are not supported",
                    word.text
                ));
            }
        }
        let addresses = match kind {
            Kind::Local => Addresses::All,
            _ => {
                let word = single(next("the address")?)?;
                let mask = !word.contains('/') && word.parse::<IpAddr>().is_ok();
                let mask = match mask {
                    true => Some(single(next("the mask")?)?),
                    false => None,
                };
                addresses_of(&word, mask.as_deref())?
            }
        };
        let method = match single(next("the method")?)?.as_str() {
            "trust" => Method::Trust,
            "reject" => Method::Reject,
            "scram-sha-256" => Method::Scram,
            "peer" if kind == Kind::Local => Method::Peer,
            "peer" => return Err("peer authentication is only supported on local sockets".to_owned()),
            "cert" if kind == Kind::HostSsl => Method::Cert,
            "cert" => return Err("cert authentication is only supported on hostssl connections".to_owned()),
            other => return Err(format!("invalid authentication method \"{other}\"")),
        };
        let mut certificate = match method {
            Method::Cert => ClientCertificate::OfUser,
            _ => ClientCertificate::NotNeeded,
        };
        while let Ok(option) = next("") {
            certificate = match single(option)?.as_str() {
                "clientcert=verify-full" if kind == Kind::HostSsl => ClientCertificate::OfUser,
                "clientcert=verify-ca" if kind == Kind::HostSsl && method != Method::Cert => {
                    ClientCertificate::Verified
                }
                other => return Err(format!("the option \"{other}\" is not supported here")),
            };
        }
        Ok(Rule {
            line,
            kind,
            databases,
            users,
            addresses,
            demand: Demand { method, certificate },
        })
    }

    fn fits(&self, asked: &Asked<'_>, is_member: &impl Fn(&str) -> bool) -> bool {
        let by_kind = match (self.kind, asked.address) {
            (Kind::Local, address) => address.is_none(),
            (_, None) => false,
            (Kind::HostSsl, _) => asked.encrypted,
            (Kind::HostNoSsl, _) => !asked.encrypted,
            (Kind::Host, _) => true,
        };
        let is_database = |word: &Word| match asked.database {
            None => word.is("replication"),
            Some(_) if word.is("replication") => false,
            Some(_) if word.is("all") => true,
            Some(name) if word.is("sameuser") => name == asked.user,
            Some(name) if word.is("samerole") || word.is("samegroup") => is_member(name),
            Some(name) => word.text == name,
        };
        let is_user = |word: &Word| match word.text.strip_prefix('+').filter(|_| !word.quoted) {
            Some(role) => is_member(role),
            None => word.is("all") || word.text == asked.user,
        };
        by_kind
            && asked
                .address
                .is_none_or(|address| self.addresses.have(address, asked.own_address))
            && self.databases.iter().any(is_database)
            && self.users.iter().any(is_user)
    }
}

fn single(field: &[Word]) -> Result<String, String> {
    match field {
        [word] => Ok(word.text.clone()),
        _ => Err("a list where one word is meant".to_owned()),
    }
}

fn addresses_of(word: &str, mask: Option<&str>) -> Result<Addresses, String> {
    match word {
        "all" => return Ok(Addresses::All),
        "samehost" => return Ok(Addresses::SameHost),
        "samenet" => return Err("\"samenet\" is not supported".to_owned()),
        _ => {}
    }
    let wrong = || format!("\"{word}\" is no address; names of hosts are not supported");
    let (address, bits) = match (word.split_once('/'), mask) {
        (Some((address, bits)), _) => {
            let bits = bits
                .parse::<u8>()
                .map_err(|_| format!("invalid CIDR mask in address \"{word}\""))?;
            (address.parse::<IpAddr>().map_err(|_| wrong())?, bits)
        }
        (None, Some(mask)) => {
            let address = word.parse::<IpAddr>().map_err(|_| wrong())?;
            let bits = mask_bits(mask).ok_or_else(|| format!("invalid IP mask \"{mask}\""))?;
            (address, bits)
        }
        (None, None) => return Err(wrong()),
    };
    match bits <= if address.is_ipv4() { 32 } else { 128 } {
        true => Ok(Addresses::Network(address, bits)),
        false => Err(format!("invalid CIDR mask in address \"{word}\"")),
    }
}

/// The mask of so many bits, for an address of this kind.
fn mask_of(network: IpAddr, bits: u8) -> IpAddr {
    let ones = |width: u32| u128::MAX.checked_shl(width - u32::from(bits)).unwrap_or(0);
    match network {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::from(ones(32) as u32)),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::from(ones(128))),
    }
}

/// The number of bits of a mask, which are its first.
fn mask_bits(mask: &str) -> Option<u8> {
    let (bits, width) = match mask.parse::<IpAddr>().ok()? {
        IpAddr::V4(mask) => (u128::from(u32::from(mask)) << 96, 32),
        IpAddr::V6(mask) => (u128::from(mask), 128),
    };
    let ones = bits.leading_ones();
    (bits.checked_shl(ones).unwrap_or(0) == 0 && ones <= width).then_some(ones as u8)
}

impl Addresses {
    fn have(self, address: IpAddr, own: Option<IpAddr>) -> bool {
        let address = address.to_canonical();
        match self {
            Addresses::All => true,
            Addresses::SameHost => address.is_loopback() || own == Some(address),
            Addresses::Network(network, bits) => match (network, address) {
                (IpAddr::V4(network), IpAddr::V4(address)) => {
                    let differing = u32::from(network) ^ u32::from(address);
                    differing.leading_zeros() >= u32::from(bits)
                }
                (IpAddr::V6(network), IpAddr::V6(address)) => {
                    let differing = u128::from(network) ^ u128::from(address);
                    differing.leading_zeros() >= u32::from(bits)
                }
                _ => false,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "\
# TYPE  DATABASE        USER            ADDRESS                 METHOD
local   all             postgres                                peer
local   all             all                                     scram-sha-256   # the others
host    \"all\"           all             127.0.0.1/32            reject
host    replication     copier          ::1/128                 trust
hostssl shop, books     +crew, joe      10.0.0.0   255.0.0.0    scram-sha-256
hostnossl sameuser      all             all                     reject
host    all             all             127.0.0.0/8 \\
                                                                trust
";

    fn method(address: Option<&str>, encrypted: bool, database: Option<&str>, user: &str) -> Option<Method> {
        let asked = Asked {
            address: address.map(|text| text.parse().unwrap()),
            own_address: None,
            encrypted,
            database,
            user,
        };
        Rules::parse(FILE)
            .unwrap()
            .demand(&asked, |role| role == "crew" && user == "ann")
            .map(|demand| demand.method)
    }

    #[test]
    fn the_first_rule_that_fits_counts() {
        use Method::{Peer, Reject, Scram, Trust};
        let (home, six, far) = (Some("127.0.0.1"), Some("::1"), Some("10.1.2.3"));
        for (address, encrypted, database, user, expected) in [
            (None, false, Some("shop"), "postgres", Some(Peer)),
            (None, false, Some("shop"), "ann", Some(Scram)),
            (None, false, None, "ann", None),
            (home, false, Some("shop"), "ann", Some(Trust)),
            (home, false, Some("all"), "ann", Some(Reject)),
            (home, false, Some("ann"), "ann", Some(Reject)),
            (home, true, Some("ann"), "ann", Some(Trust)),
            (Some("::ffff:127.0.0.1"), false, Some("shop"), "ann", Some(Trust)),
            (six, false, None, "copier", Some(Trust)),
            (six, false, None, "ann", None),
            (six, false, Some("shop"), "copier", None),
            (far, true, Some("books"), "ann", Some(Scram)),
            (far, true, Some("books"), "joe", Some(Scram)),
            (far, true, Some("books"), "bob", None),
            (far, false, Some("books"), "ann", None),
            (Some("11.1.2.3"), true, Some("books"), "ann", None),
        ] {
            assert_eq!(
                method(address, encrypted, database, user),
                expected,
                "{address:?} {database:?} {user}"
            );
        }
    }

    #[test]
    fn a_certificate_is_wanted_where_a_rule_says_so() {
        use ClientCertificate::{NotNeeded, OfUser, Verified};
        for (rest, expected) in [
            ("cert", OfUser),
            ("cert clientcert=verify-full", OfUser),
            ("scram-sha-256", NotNeeded),
            ("scram-sha-256 clientcert=verify-ca", Verified),
            ("trust clientcert=verify-full", OfUser),
        ] {
            let rules = Rules::parse(&format!("hostssl all all all {rest}")).unwrap();
            let asked = Asked {
                address: Some([192, 0, 2, 1].into()),
                own_address: None,
                encrypted: true,
                database: Some("shop"),
                user: "joe",
            };
            let demand = rules.demand(&asked, |_| false).unwrap();
            assert_eq!(demand.certificate, expected, "{rest}");
            assert_eq!(rules.wants_certificates(), expected != NotNeeded, "{rest}");
        }
    }

    #[test]
    fn what_is_not_understood_has_its_line() {
        for (text, line) in [
            ("locale all all trust", 1),
            ("\n# x\nlocal all all", 3),
            ("host all all trust", 1),
            ("host all all 127.0.0.1 trust", 1),
            ("host all all 127.0.0.1/33 trust", 1),
            ("host all all 127.0.0.1 255.0.255.0 trust", 1),
            ("host all all example.org trust", 1),
            ("host all all all peer", 1),
            ("local all all md5", 1),
            ("local all all scram-sha-256 map=x", 1),
            ("host all all all cert", 1),
            ("host all all all scram-sha-256 clientcert=verify-ca", 1),
            ("hostssl all all all cert clientcert=verify-ca", 1),
            ("local all \"joe trust", 1),
            ("local all all trust\nlocal all @file trust", 2),
        ] {
            let error = Rules::parse(text).expect_err(text);
            assert_eq!(error.line, line, "{text}: {error}");
        }
        assert_eq!(Rules::parse("").unwrap().0, []);
    }

    #[test]
    fn without_a_file_this_machine_is_trusted_and_no_other() {
        let rules = Rules::default();
        let asked = |address: Option<&str>, database| Asked {
            address: address.map(|text| text.parse().unwrap()),
            own_address: Some([192, 0, 2, 7].into()),
            encrypted: true,
            database,
            user: "joe",
        };
        for (address, expected) in [
            (None, Some(Method::Trust)),
            (Some("127.0.0.1"), Some(Method::Trust)),
            (Some("192.0.2.7"), Some(Method::Trust)),
            (Some("192.0.2.1"), None),
        ] {
            for database in [Some("shop"), None] {
                let demand = rules.demand(&asked(address, database), |_| false);
                assert_eq!(demand.map(|demand| demand.method), expected);
            }
        }
    }
}
