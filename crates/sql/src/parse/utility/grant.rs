//! GRANT and REVOKE of privileges on objects.

use crate::error::{EngineError, Result};
use crate::parse::utility::reader::{Name, Reader};
use crate::plan::{DefaultsOf, GrantObjects, GrantPlan};

impl Reader<'_> {
    /// GRANT or REVOKE, behind the word.
    pub(super) fn grant(&mut self, is_grant: bool) -> Result<GrantPlan<Name>> {
        let option_alone = !is_grant && self.eat("grant option for");
        let privileges = self.privileges()?;
        self.expect("on")?;
        let objects = self.granted_objects()?;
        self.expect(if is_grant { "to" } else { "from" })?;
        let mut grantees = vec![self.grantee()?];
        while self.eat_symbol(',') {
            grantees.push(self.grantee()?);
        }
        let with_option = is_grant && self.eat("with grant option");
        let grantor = match self.eat("granted by") {
            true => Some(self.role()?),
            false => None,
        };
        let cascade = !is_grant && self.eat("cascade");
        let _ = is_grant || cascade || self.eat("restrict");
        Ok(GrantPlan {
            is_grant,
            privileges,
            objects,
            grantees,
            grant_option: option_alone || with_option,
            cascade,
            grantor,
        })
    }

    /// ALTER DEFAULT PRIVILEGES, behind the words.
    pub(super) fn default_privileges(&mut self) -> Result<GrantPlan<Name>> {
        let (mut roles, mut schemas) = (Vec::new(), Vec::new());
        loop {
            if self.eat("for role") || self.eat("for user") {
                roles.extend(self.roles()?);
            } else if self.eat("in schema") {
                schemas.extend(self.identifiers()?);
            } else {
                break;
            }
        }
        let is_grant = self.eat("grant");
        if !is_grant {
            self.expect("revoke")?;
        }
        let option_alone = !is_grant && self.eat("grant option for");
        let privileges = self.privileges()?;
        self.expect("on")?;
        let (kind, _) = self.identifier()?;
        let of = match kind.as_str() {
            "tables" => DefaultsOf::Tables,
            "sequences" => DefaultsOf::Sequences,
            "schemas" => DefaultsOf::Schemas,
            "functions" | "routines" | "types" => {
                let kind = kind.to_uppercase();
                return Err(EngineError::not_supported(format!(
                    "ALTER DEFAULT PRIVILEGES … ON {kind}"
                )));
            }
            _ => {
                self.at -= 1;
                return Err(self.syntax_error());
            }
        };
        self.expect(if is_grant { "to" } else { "from" })?;
        let mut grantees = vec![self.grantee()?];
        while self.eat_symbol(',') {
            grantees.push(self.grantee()?);
        }
        let with_option = is_grant && self.eat("with grant option");
        let cascade = !is_grant && self.eat("cascade");
        let _ = is_grant || cascade || self.eat("restrict");
        Ok(GrantPlan {
            is_grant,
            privileges,
            objects: GrantObjects::Defaults { roles, schemas, of },
            grantees,
            grant_option: option_alone || with_option,
            cascade,
            grantor: None,
        })
    }

    fn grantee(&mut self) -> Result<crate::plan::Owner> {
        // An old word that means nothing.
        let _ = self.eat("group");
        self.role()
    }

    fn privileges(&mut self) -> Result<Vec<(String, Vec<String>)>> {
        if self.eat("all") {
            let _ = self.eat("privileges");
            return Ok(vec![("all".to_owned(), self.columns_in_parentheses()?)]);
        }
        let mut privileges = Vec::new();
        loop {
            let (word, _) = self.identifier()?;
            if matches!(word.as_str(), "alter" | "set") && self.peek_word() != "on" {
                return Err(EngineError::not_supported("GRANT on a parameter"));
            }
            privileges.push((word, self.columns_in_parentheses()?));
            if !self.eat_symbol(',') {
                return Ok(privileges);
            }
        }
    }

    fn columns_in_parentheses(&mut self) -> Result<Vec<String>> {
        let mut columns = Vec::new();
        if self.eat_symbol('(') {
            columns.push(self.identifier()?.0);
            while self.eat_symbol(',') {
                columns.push(self.identifier()?.0);
            }
            self.expect_symbol(')')?;
        }
        Ok(columns)
    }

    fn granted_objects(&mut self) -> Result<GrantObjects<Name>> {
        if self.eat("all tables in schema") {
            return Ok(GrantObjects::TablesIn(self.identifiers()?));
        }
        if self.eat("all sequences in schema") {
            return Ok(GrantObjects::SequencesIn(self.identifiers()?));
        }
        if self.eat("schema") {
            return Ok(GrantObjects::Schemas(self.identifiers()?));
        }
        if self.eat("database") {
            return Ok(GrantObjects::Databases(self.identifiers()?));
        }
        if self.eat("sequence") {
            return Ok(GrantObjects::Sequences(self.names()?));
        }
        const OTHERS: [&str; 15] = [
            "all functions in schema",
            "all procedures in schema",
            "all routines in schema",
            "domain",
            "foreign data wrapper",
            "foreign server",
            "function",
            "language",
            "large object",
            "parameter",
            "procedure",
            "routine",
            "tablespace",
            "type",
            "server",
        ];
        if let Some(other) = OTHERS.into_iter().find(|words| self.begins(words)) {
            return Err(EngineError::not_supported(format!(
                "GRANT ON {}",
                other.to_uppercase()
            )));
        }
        let _ = self.eat("table");
        Ok(GrantObjects::Tables(self.names()?))
    }

    fn identifiers(&mut self) -> Result<Vec<String>> {
        let mut names = vec![self.identifier()?.0];
        while self.eat_symbol(',') {
            names.push(self.identifier()?.0);
        }
        Ok(names)
    }
}
