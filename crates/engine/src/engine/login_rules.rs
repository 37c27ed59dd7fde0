//! The source of the rules by which clients log in. The server that reads them is above the engine, and installs it here.

use std::sync::{Arc, OnceLock};

use crate::engine::Engine;
use crate::login_rule::LoginRuleLine;

/// Reads the file.
type Source = Arc<dyn Fn() -> Vec<LoginRuleLine> + Send + Sync>;

/// The source, once it is installed.
#[derive(Default)]
pub(crate) struct LoginRules(OnceLock<Source>);

impl std::fmt::Debug for LoginRules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("LoginRules")
            .field(&self.0.get().is_some())
            .finish()
    }
}

impl Engine {
    /// Sets the source of the rules; a second call changes nothing.
    pub fn set_login_rules(&self, source: Source) {
        let _ = self.login_rules.0.set(source);
    }

    /// The rules as their file has them now; none where no server reads one.
    pub(crate) fn login_rule_lines(&self) -> Vec<LoginRuleLine> {
        self.login_rules.0.get().map_or_else(Vec::new, |source| source())
    }
}
