//! The keys that name addresses: their form. Whether an address is this machine's is found when the server takes it.

use super::{Config, require};
use clearway_sql::error::EngineError;

/// True for `ADDRESS:PORT`, where the address may be a name.
fn is_address(text: &str) -> bool {
    let parts = text.rsplit_once(':');
    parts.is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
}

impl Config {
    /// Refuses values that are no addresses.
    pub(super) fn check_addresses(&self) -> Result<(), EngineError> {
        let (listen, metrics) = (&*self.listen, &*self.metrics_listen);
        let is_right = listen.is_empty() || listen == "none" || is_address(listen);
        require("listen", is_right, || {
            format!("is \"{listen}\", but must be ADDRESS:PORT, none, or empty")
        })?;
        let is_right = metrics.is_empty() || is_address(metrics);
        require("metrics_listen", is_right, || {
            format!("is \"{metrics}\", but must be ADDRESS:PORT, or empty")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_port() {
        for right in [
            "",
            "127.0.0.1:5433",
            "[::1]:0",
            "db1.example.org:65535",
            "localhost:1",
        ] {
            for key in ["listen", "metrics_listen"] {
                let text = format!("{key} = \"{right}\"");
                assert!(Config::from_toml(&text).is_ok(), "{text}");
            }
        }
        assert!(Config::from_toml("listen = \"none\"").is_ok());
        assert!(Config::from_toml("metrics_listen = \"none\"").is_err());
        for wrong in [
            "127.0.0.1",
            "5433",
            ":5433",
            "127.0.0.1:",
            "localhost:65536",
            "a:b",
        ] {
            for key in ["listen", "metrics_listen"] {
                let error = Config::from_toml(&format!("{key} = \"{wrong}\"")).unwrap_err();
                let told = format!("{key} is \"{wrong}\", but must be ADDRESS:PORT");
                assert!(error.message().contains(&told), "{error}");
            }
        }
    }
}
