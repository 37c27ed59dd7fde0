//! etcd's transactions, through its JSON gateway (`/v3/kv/txn`, which etcd 3.4 and later have).
//!
//! One request is one transaction that writes, and reads all keys of the cluster, linearizably. An endpoint that does not
//! answer within the time limit is left for the next one in the list; a request that had no answer may have been made all
//! the same, or may be made later. Over `https` the endpoint's certificate is checked, and the node can show its own; a user
//! and a password are exchanged for a token.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use ureq::Agent;
use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig, TlsProvider, parse_pem};

use crate::cluster_state::{Change, Condition, MEMBERS, Outcome, Transaction, View};
use crate::error::{NodeError, Result};

/// The longest answer that is read. The keys of a cluster have a few kilobytes.
const ANSWER_BYTES_MAX: u64 = 4 << 20;

/// The endpoints of etcd, and the proofs of who asks.
#[derive(Debug, Clone, Default)]
pub struct EtcdOptions {
    /// Its endpoints, such as `https://etcd1.example.org:2379`.
    pub endpoints: Vec<String>,
    /// The certificates of the authorities that sign the endpoints' (PEM).
    pub cacert: Option<PathBuf>,
    /// The certificate of this node (PEM).
    pub cert: Option<PathBuf>,
    /// Its key (PEM).
    pub key: Option<PathBuf>,
    /// A user of etcd,
    pub user: Option<String>,
    /// and the file whose first line is its password.
    pub passfile: Option<PathBuf>,
}

/// A client of etcd for one cluster.
pub struct Etcd {
    agent: Agent,
    endpoints: Vec<String>,
    /// The endpoint that answered last.
    current: usize,
    prefix: String,
    login: Option<(String, String)>,
    token: Option<String>,
}

impl std::fmt::Debug for Etcd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Etcd")
            .field("endpoints", &self.endpoints)
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}

impl Etcd {
    /// A client for the keys below `prefix`, which gives each endpoint `patience` for an answer.
    pub fn new(options: &EtcdOptions, prefix: String, patience: Duration) -> Result<Etcd> {
        if options.endpoints.is_empty() {
            return Err(NodeError::Option("etcd needs an endpoint".to_owned()));
        }
        let mut endpoints = Vec::new();
        for endpoint in &options.endpoints {
            let endpoint = endpoint.trim_end_matches('/');
            if !endpoint.starts_with("http://") && !endpoint.starts_with("https://") {
                return Err(NodeError::Option(format!(
                    "an endpoint of etcd begins with https:// or http://, not \"{endpoint}\""
                )));
            }
            endpoints.push(endpoint.to_owned());
        }
        let login = match (&options.user, &options.passfile) {
            (Some(user), Some(file)) => Some((user.clone(), first_line(file)?)),
            (None, None) => None,
            _ => {
                return Err(NodeError::Option(
                    "a user of etcd and a file with its password go together".to_owned(),
                ));
            }
        };
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            .proxy(None)
            .max_redirects(0)
            .timeout_global(Some(patience))
            .tls_config(tls(options)?)
            .build()
            .new_agent();
        Ok(Etcd {
            agent,
            endpoints,
            current: 0,
            prefix,
            login,
            token: None,
        })
    }

    /// Has etcd make the transaction; its outcome. An error may mean that it was made, or is made later.
    pub fn transact(&mut self, transaction: &Transaction) -> Result<Outcome> {
        let answer = self.ask("/v3/kv/txn", &body(&self.prefix, transaction))?;
        outcome(&self.prefix, &answer)
    }

    /// Sends to one endpoint after the other until one answers.
    fn ask(&mut self, path: &str, body: &Value) -> Result<Value> {
        let mut problems = Vec::new();
        for _ in 0..self.endpoints.len() {
            match self.ask_current(path, body) {
                Err(NodeError::Unreachable(problem)) => {
                    problems.push(format!("{}: {problem}", self.endpoints[self.current]));
                    self.current = (self.current + 1) % self.endpoints.len();
                }
                decided => return decided,
            }
        }
        Err(NodeError::Unreachable(problems.join("; ")))
    }

    fn ask_current(&mut self, path: &str, body: &Value) -> Result<Value> {
        if self.login.is_some() && self.token.is_none() {
            self.log_in()?;
        }
        let (status, answer) = self.post(path, body)?;
        let is_unknown = answer["code"] == 16 || status == 401;
        if is_unknown && self.login.is_some() {
            // The token has expired, or this endpoint has never seen it.
            self.log_in()?;
            return accepted(self.post(path, body)?);
        }
        let answer = accepted((status, answer));
        if matches!(answer, Err(NodeError::Refused(_))) {
            // A token of before a change of the users is refused in several ways.
            self.token = None;
        }
        answer
    }

    fn log_in(&mut self) -> Result<()> {
        let Some((name, password)) = &self.login else {
            return Ok(());
        };
        self.token = None;
        let answer = self.post(
            "/v3/auth/authenticate",
            &json!({ "name": name, "password": password }),
        )?;
        let answer = accepted(answer)?;
        let token = answer["token"].as_str();
        self.token = Some(
            token
                .ok_or_else(|| NodeError::Answer("a login without a token".to_owned()))?
                .to_owned(),
        );
        Ok(())
    }

    fn post(&self, path: &str, body: &Value) -> Result<(u16, Value)> {
        let unreachable = |error: ureq::Error| NodeError::Unreachable(error.to_string());
        let mut request = self
            .agent
            .post(format!("{}{path}", self.endpoints[self.current]))
            .header("Content-Type", "application/json");
        if let Some(token) = &self.token {
            request = request.header("Authorization", token);
        }
        let mut answer = request.send(body.to_string()).map_err(unreachable)?;
        let status = answer.status().as_u16();
        let text = answer
            .body_mut()
            .with_config()
            .limit(ANSWER_BYTES_MAX)
            .read_to_string()
            .map_err(unreachable)?;
        let value = serde_json::from_str(&text).unwrap_or(Value::String(text));
        Ok((status, value))
    }
}

/// The answer of a request that was carried out. An endpoint without its cluster is one that is not reachable.
fn accepted((status, answer): (u16, Value)) -> Result<Value> {
    if status == 200 {
        return Ok(answer);
    }
    let problem = answer["message"]
        .as_str()
        .or(answer["error"].as_str())
        .or(answer.as_str())
        .map_or_else(|| format!("status {status}"), |text| text.trim().to_owned());
    match status {
        500..=599 => Err(NodeError::Unreachable(problem)),
        _ => Err(NodeError::Refused(problem)),
    }
}

fn encoded(bytes: impl AsRef<[u8]>) -> String {
    STANDARD.encode(bytes)
}

/// The end of the range of keys that begin with `prefix`, which ends with a slash.
fn range_end(prefix: &str) -> Vec<u8> {
    let mut end = prefix.as_bytes().to_vec();
    if let Some(last) = end.last_mut() {
        *last += 1;
    }
    end
}

/// The transaction as the gateway takes it.
fn body(prefix: &str, transaction: &Transaction) -> Value {
    let key = |name: &str| encoded(format!("{prefix}{name}"));
    let condition = |condition: &Condition| {
        json!({
            "key": key(condition.key), "target": "MOD", "result": "EQUAL",
            "mod_revision": condition.revision.to_string(),
        })
    };
    let put =
        |name: &str, value: &str| json!({ "request_put": { "key": key(name), "value": encoded(value) } });
    let change = |change: &Change| match change {
        Change::Put(name, value) => put(name, value),
        Change::Delete(name) => json!({ "request_delete_range": { "key": key(name) } }),
    };
    let member = transaction.member.as_ref().map(|(name, member)| {
        let value = serde_json::to_string(member).unwrap_or_default();
        put(&format!("{MEMBERS}{name}"), &value)
    });
    let all = json!({ "request_range": { "key": encoded(prefix), "range_end": encoded(range_end(prefix)) } });
    let otherwise: Vec<Value> = member.into_iter().chain([all]).collect();
    let made: Vec<Value> = transaction
        .changes
        .iter()
        .map(change)
        .chain(otherwise.clone())
        .collect();
    let conditions: Vec<Value> = transaction.conditions.iter().map(condition).collect();
    json!({ "compare": conditions, "success": made, "failure": otherwise })
}

/// The outcome that the gateway tells. Numbers of 64 bits are texts, and what is false or empty is left out.
fn outcome(prefix: &str, answer: &Value) -> Result<Outcome> {
    let refuse = |problem: &str| NodeError::Answer(problem.to_owned());
    let responses = answer["responses"]
        .as_array()
        .ok_or_else(|| refuse("no responses"))?;
    let range = responses
        .iter()
        .find_map(|response| response.get("response_range"))
        .ok_or_else(|| refuse("no range"))?;
    let mut keys = Vec::new();
    for entry in range["kvs"].as_array().into_iter().flatten() {
        let decoded = |field: &str| {
            let text = entry[field].as_str().unwrap_or_default();
            STANDARD
                .decode(text)
                .map_err(|_| refuse("a field that is not base64"))
        };
        let key = String::from_utf8(decoded("key")?).map_err(|_| refuse("a key that is no text"))?;
        let revision = entry["mod_revision"].as_str().and_then(|text| text.parse().ok());
        let revision: i64 = revision.ok_or_else(|| refuse("a key without a revision"))?;
        let name = key.strip_prefix(prefix).unwrap_or(&key).to_owned();
        keys.push((name, decoded("value")?, revision));
    }
    let keys = keys
        .iter()
        .map(|(name, value, at)| (name.as_str(), value.as_slice(), *at));
    Ok(Outcome {
        succeeded: answer["succeeded"].as_bool().unwrap_or(false),
        view: View::parse(keys).map_err(|error| NodeError::Answer(error.to_string()))?,
    })
}

fn read(path: &std::path::Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|source| NodeError::File {
        path: path.to_owned(),
        source,
    })
}

fn first_line(path: &std::path::Path) -> Result<String> {
    let text = String::from_utf8_lossy(&read(path)?).into_owned();
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

fn tls(options: &EtcdOptions) -> Result<TlsConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let bad = |what: &str, error: &dyn std::fmt::Display| NodeError::Option(format!("{what}: {error}"));
    let certificates = |path: &std::path::Path| -> Result<Vec<Certificate<'static>>> {
        let bytes = read(path)?;
        let items = parse_pem(&bytes).filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(Ok(certificate)),
            Ok(_) => None,
            Err(error) => Some(Err(bad(&path.display().to_string(), &error))),
        });
        items.collect()
    };
    let mut builder = TlsConfig::builder()
        .provider(TlsProvider::Rustls)
        .unversioned_rustls_crypto_provider(provider);
    builder = match &options.cacert {
        Some(path) => builder.root_certs(RootCerts::new_with_certs(&certificates(path)?)),
        // Nothing is trusted that was not named.
        None => builder.root_certs(RootCerts::new_with_certs(&[])),
    };
    match (&options.cert, &options.key) {
        (Some(cert), Some(key)) => {
            let key = PrivateKey::from_pem(&read(key)?).map_err(|error| bad("the key for etcd", &error))?;
            builder = builder.client_cert(Some(ClientCert::new_with_certs(&certificates(cert)?, key)));
        }
        (None, None) => {}
        _ => {
            return Err(NodeError::Option(
                "a certificate for etcd and its key go together".to_owned(),
            ));
        }
    }
    let encrypts = options
        .endpoints
        .iter()
        .any(|endpoint| endpoint.starts_with("https://"));
    if encrypts && options.cacert.is_none() {
        return Err(NodeError::Option(
            "an https endpoint needs --etcd-cacert: the certificates that its own is checked with".to_owned(),
        ));
    }
    Ok(builder.build())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_is_written_as_the_gateway_takes_it() {
        let transaction = Transaction {
            conditions: vec![Condition {
                key: "leader",
                revision: 7,
            }],
            changes: vec![
                Change::Put("leader".to_owned(), "{}".to_owned()),
                Change::Delete("switchover".to_owned()),
            ],
            member: None,
        };
        let body = body("/clearway/c/", &transaction);
        assert_eq!(body["compare"][0]["mod_revision"], "7");
        assert_eq!(body["compare"][0]["key"], encoded("/clearway/c/leader"));
        assert_eq!(body["success"][0]["request_put"]["value"], encoded("{}"));
        assert_eq!(
            body["success"][1]["request_delete_range"]["key"],
            encoded("/clearway/c/switchover")
        );
        assert_eq!(body["success"].as_array().map(Vec::len), Some(3));
        assert_eq!(
            body["failure"][0]["request_range"]["range_end"],
            encoded("/clearway/c0")
        );
    }

    #[test]
    fn answers_are_read_and_what_is_none_is_refused() {
        let leader = r#"{"name":"a","instance":3,"term":1,"renewals":0,"ttl_ms":5000}"#;
        let answer = json!({ "succeeded": true, "responses": [
            { "response_put": {} },
            { "response_range": { "kvs": [
                { "key": encoded("/c/leader"), "value": encoded(leader), "mod_revision": "12" },
                { "key": encoded("/c/pause"), "value": encoded("x"), "mod_revision": "9" },
                { "key": encoded("/c/database"), "value": encoded("18446744073709551615"), "mod_revision": "9" },
            ] } },
        ] });
        let outcome = super::outcome("/c/", &answer).unwrap();
        assert!(outcome.succeeded && outcome.view.paused);
        assert_eq!(outcome.view.leader_revision(), 12);
        assert_eq!(outcome.view.database, Some(u64::MAX));
        let empty = json!({ "responses": [{ "response_range": {} }] });
        let outcome = super::outcome("/c/", &empty).unwrap();
        assert_eq!((outcome.succeeded, outcome.view), (false, View::default()));
        for bad in [
            json!({}),
            json!({ "responses": [{ "response_put": {} }] }),
            json!({ "responses": [{ "response_range": { "kvs": [{ "key": "*", "mod_revision": "1" }] } }] }),
            json!({ "responses": [{ "response_range": { "kvs": [
                { "key": encoded("/c/leader"), "value": encoded("{}"), "mod_revision": "1" }] } }] }),
        ] {
            assert!(super::outcome("/c/", &bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_refusal_says_what_etcd_has_said() {
        let said = |status, answer| accepted((status, answer)).unwrap_err().to_string();
        let message = json!({ "message": "permission denied", "code": 7 });
        assert_eq!(said(403, message), "etcd refuses: permission denied");
        let text = Value::String("CommonName of client\n".to_owned());
        assert_eq!(said(400, text), "etcd refuses: CommonName of client");
        assert_eq!(said(404, json!({})), "etcd refuses: status 404");
        assert_eq!(said(503, json!({})), "etcd does not answer: status 503");
    }

    #[test]
    fn an_endpoint_that_is_none_is_refused() {
        let new = |options| Etcd::new(&options, prefix(), Duration::from_secs(1)).map(drop);
        fn prefix() -> String {
            "/clearway/c/".to_owned()
        }
        let with = |endpoint: &str| EtcdOptions {
            endpoints: vec![endpoint.to_owned()],
            ..EtcdOptions::default()
        };
        assert!(new(EtcdOptions::default()).is_err());
        assert!(new(with("localhost:2379")).is_err());
        assert!(
            new(with("https://localhost:2379")).is_err(),
            "nothing to check it with"
        );
        assert!(new(with("http://localhost:2379")).is_ok());
    }
}
