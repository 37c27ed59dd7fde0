//! The types that a session's statements know, and the settings that dates are read and shown by: put in force before it
//! binds, and before it runs.

use std::sync::Arc;

use clearway_sql::value::datetime::in_force as date_times;
use clearway_sql::value::user_type::in_force::{self, Token};

use crate::catalog::types_in_force::put_visible_in_force;
use crate::session::Session;

impl Session {
    /// Puts the types that the session sees in force, for the version of the catalog that it has looked at last.
    #[inline]
    pub(crate) fn know_types(&mut self, version: u64) {
        let token = Token {
            version,
            path: Arc::as_ptr(&self.settings.planning) as usize,
            transaction: self.txn.redefining_xid(),
        };
        if !in_force::is(token) {
            self.know_other_types(token);
        }
    }

    /// Lets this thread know the types that the session sees now: a client names one by its number, before a statement
    /// is prepared.
    pub fn see_types(&mut self) {
        let version = self.txn.catalog_version();
        self.know_types(version);
    }

    #[cold]
    fn know_other_types(&self, token: Token) {
        let planning = &self.settings.planning;
        put_visible_in_force(
            token,
            self.txn.catalog_state(),
            Arc::clone(planning),
            &self.info.user,
        );
        date_times::put(planning.date_times.clone());
    }
}
