//! CREATE, ALTER and DROP ROLE, and membership in roles by GRANT and REVOKE.

use crate::error::{EngineError, Result, SqlState};
use crate::lex::Kind;
use crate::parse::utility::reader::Reader;
use crate::parse::utility::schema::RoleName;
use crate::plan::{RoleOptions, RoleStatement, Secret};

/// The words for a role.
const KINDS: [&str; 3] = ["role", "user", "group"];

/// True for CREATE ROLE and its like.
pub(super) fn begins_create(words: &[&str]) -> bool {
    words.get(1).is_some_and(|word| KINDS.contains(word)) && words.get(2) != Some(&"mapping")
}

impl Reader<'_> {
    /// True if a word for a role comes next, and not a user mapping.
    pub(super) fn begins_role(&self) -> bool {
        KINDS.contains(&self.peek_word()) && !self.begins("user mapping")
    }

    /// True for GRANT or REVOKE, behind the word, if it is about membership: there is no ON.
    pub(super) fn grants_role(&self) -> bool {
        let on = |kind: &Kind| matches!(kind, Kind::Word(word) if word == "on");
        !self.tokens[self.at..].iter().any(|token| on(&token.kind))
    }

    /// CREATE ROLE, behind CREATE.
    pub(super) fn create_role(&mut self) -> Result<RoleStatement> {
        let (kind, _) = self.identifier()?;
        let name = self.new_role_name()?;
        let _ = self.eat("with");
        let mut options = RoleOptions::default();
        while self.at < self.tokens.len() {
            self.role_option(&mut options, true)?;
        }
        options.login = options.login.or(Some(kind == "user"));
        Ok(RoleStatement::Create {
            name,
            options: Box::new(options),
        })
    }

    /// ALTER ROLE, behind ALTER.
    pub(super) fn alter_role(&mut self) -> Result<RoleStatement> {
        let (kind, _) = self.identifier()?;
        let is_all = kind != "group" && self.begins("all");
        let role = match is_all && self.eat("all") {
            true => None,
            false => Some(self.role()?),
        };
        if kind == "group" && (self.begins("add user") || self.begins("drop user")) {
            let add = self.eat("add user");
            let _ = add || self.eat("drop user");
            return Ok(RoleStatement::Members {
                group: role.unwrap_or(RoleName::Public),
                members: self.roles()?,
                add,
            });
        }
        if self.eat("rename to") {
            let Some(RoleName::Named(name)) = role else {
                return Err(self.syntax_error());
            };
            let to = self.new_role_name()?;
            return Ok(RoleStatement::Rename { name, to });
        }
        if kind != "group" && (self.begins("in database") || matches!(self.peek_word(), "set" | "reset")) {
            return self.role_setting(role);
        }
        let Some(role) = role.filter(|_| kind != "group") else {
            return Err(self.syntax_error());
        };
        let _ = self.eat("with");
        let mut options = RoleOptions::default();
        while self.at < self.tokens.len() {
            self.role_option(&mut options, false)?;
        }
        Ok(RoleStatement::Alter {
            role,
            options: Box::new(options),
        })
    }

    /// SET and RESET of ALTER ROLE, behind the role.
    fn role_setting(&mut self, role: Option<RoleName>) -> Result<RoleStatement> {
        let database = match self.eat("in database") {
            true => Some(self.identifier()?.0),
            false => None,
        };
        let statement = |name, value, from_current| RoleStatement::Set {
            role: role.clone(),
            database: database.clone(),
            name,
            value,
            from_current,
        };
        if self.eat("reset") {
            let name = match self.eat("all") {
                true => None,
                false => Some(self.setting_name()?),
            };
            return Ok(statement(name, None, false));
        }
        self.expect("set")?;
        let start = self.at;
        let name = self.setting_name()?;
        if self.eat("from current") {
            return Ok(statement(Some(name), None, true));
        }
        self.at = start;
        match self.set()? {
            crate::plan::ControlStatement::Set {
                name,
                value,
                local: false,
            } => Ok(statement(Some(name), value, false)),
            _ => Err(self.syntax_error()),
        }
    }

    /// DROP ROLE, behind DROP.
    pub(super) fn drop_role(&mut self) -> Result<RoleStatement> {
        self.identifier()?;
        let if_exists = self.eat("if exists");
        Ok(RoleStatement::Drop {
            roles: self.roles()?,
            if_exists,
        })
    }

    /// REASSIGN OWNED, behind the first word.
    pub(super) fn reassign_owned(&mut self) -> Result<RoleStatement> {
        self.expect("owned by")?;
        let roles = self.roles()?;
        self.expect("to")?;
        let to = self.role()?;
        Ok(RoleStatement::ReassignOwned { roles, to })
    }

    /// DROP OWNED, behind both words.
    pub(super) fn drop_owned(&mut self) -> Result<RoleStatement> {
        self.expect("by")?;
        let roles = self.roles()?;
        let cascade = self.eat("cascade");
        let _ = cascade || self.eat("restrict");
        Ok(RoleStatement::DropOwned { roles, cascade })
    }

    /// GRANT and REVOKE of membership, behind the verb.
    pub(super) fn grant_role(&mut self, is_grant: bool) -> Result<RoleStatement> {
        let mut admin_option = !is_grant && self.eat("admin option for");
        let mut roles = vec![self.identifier()?.0];
        while self.eat_symbol(',') {
            roles.push(self.identifier()?.0);
        }
        self.expect(if is_grant { "to" } else { "from" })?;
        let members = self.roles()?;
        admin_option |= is_grant && self.eat("with admin option");
        let grantor = match self.eat("granted by") {
            true => Some(self.role()?),
            false => None,
        };
        // Memberships do not depend on each other.
        let _ = !is_grant && (self.eat("cascade") || self.eat("restrict"));
        Ok(RoleStatement::Grant {
            roles,
            members,
            is_grant,
            admin_option,
            grantor,
        })
    }

    fn role_option(&mut self, options: &mut RoleOptions, is_new: bool) -> Result<()> {
        let word = self.peek_word().to_owned();
        if word == "unencrypted" && self.begins("unencrypted password") {
            return Err(EngineError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "UNENCRYPTED PASSWORD is no longer supported",
            )
            .with_hint("Remove UNENCRYPTED to store the password in encrypted form instead."));
        }
        let flag = |options: &mut RoleOptions, name: &str, value: bool| {
            let place = match name {
                "superuser" => &mut options.superuser,
                "createdb" => &mut options.create_databases,
                "createrole" => &mut options.create_roles,
                "inherit" => &mut options.inherit,
                "login" => &mut options.login,
                "replication" => &mut options.replication,
                "bypassrls" => &mut options.bypass_row_security,
                _ => return None,
            };
            Some(place.replace(value).is_some())
        };
        let negated = word.strip_prefix("no");
        let found =
            flag(options, &word, true).or_else(|| negated.and_then(|name| flag(options, name, false)));
        let repeated = match found {
            Some(repeated) => {
                self.at += 1;
                repeated
            }
            None => self.role_option_with_value(options, is_new)?,
        };
        match repeated {
            true => Err(EngineError::new(
                SqlState::SYNTAX_ERROR,
                "conflicting or redundant options",
            )),
            false => Ok(()),
        }
    }

    /// An option with more words; true if it is there already.
    fn role_option_with_value(&mut self, options: &mut RoleOptions, is_new: bool) -> Result<bool> {
        let encrypted = self.eat("encrypted");
        if self.eat("password") {
            let password = match self.eat("null") {
                true if !encrypted => None,
                _ => Some(Secret(self.role_text()?)),
            };
            return Ok(options.password.replace(password).is_some());
        }
        if encrypted {
            return Err(self.syntax_error());
        }
        if self.eat("connection limit") {
            let negative = self.eat_symbol('-');
            let Some(Kind::Number(digits)) = self.peek().cloned() else {
                return Err(self.syntax_error());
            };
            let limit = digits.parse::<i32>().map_err(|_| self.syntax_error())?;
            self.at += 1;
            let limit = if negative { -limit } else { limit };
            return Ok(options.connection_limit.replace(limit).is_some());
        }
        if self.eat("valid until") {
            let until = self.role_text()?;
            return Ok(options.valid_until.replace(until).is_some());
        }
        if self.eat("sysid") {
            // It is ignored, as it is in PostgreSQL.
            self.at += 1;
            return Ok(false);
        }
        if self.eat("user") || is_new && self.eat("role") {
            let members = self.roles()?;
            return Ok(options.members.replace(members).is_some());
        }
        if is_new && self.eat("admin") {
            let admins = self.roles()?;
            return Ok(options.admins.replace(admins).is_some());
        }
        if is_new && (self.eat("in role") || self.eat("in group")) {
            let roles = self.roles()?;
            return Ok(options.in_roles.replace(roles).is_some());
        }
        match self.peek() {
            Some(Kind::Word(word)) => Err(EngineError::new(
                SqlState::SYNTAX_ERROR,
                format!("unrecognized role option \"{word}\""),
            )
            .with_position(self.position_of(self.tokens[self.at].start))),
            _ => Err(self.syntax_error()),
        }
    }

    fn role_text(&mut self) -> Result<String> {
        let Some(Kind::Text(text)) = self.peek().cloned() else {
            return Err(self.syntax_error());
        };
        self.at += 1;
        Ok(text)
    }

    pub(super) fn roles(&mut self) -> Result<Vec<RoleName>> {
        let mut roles = vec![self.role()?];
        while self.eat_symbol(',') {
            roles.push(self.role()?);
        }
        Ok(roles)
    }

    /// A role that a statement names.
    pub(super) fn role(&mut self) -> Result<RoleName> {
        let is_word = matches!(self.peek(), Some(Kind::Word(_)));
        let (name, position) = self.identifier()?;
        Ok(match name.as_str() {
            "current_user" | "current_role" if is_word => RoleName::Current,
            "session_user" if is_word => RoleName::Session,
            "public" => RoleName::Public,
            "none" => return Err(reserved(&name).with_position(position)),
            _ => RoleName::Named(name),
        })
    }

    /// The name of a role to be made.
    fn new_role_name(&mut self) -> Result<String> {
        let is_word = matches!(self.peek(), Some(Kind::Word(_)));
        let (name, position) = self.identifier()?;
        let problem = match name.as_str() {
            "current_user" | "current_role" | "session_user" if is_word => EngineError::new(
                SqlState::from_code("42939"),
                format!("{} cannot be used as a role name here", name.to_uppercase()),
            ),
            "public" | "none" => reserved(&name),
            _ => return Ok(name),
        };
        Err(problem.with_position(position))
    }
}

/// 42939
fn reserved(name: &str) -> EngineError {
    EngineError::new(
        SqlState::from_code("42939"),
        format!("role name \"{name}\" is reserved"),
    )
}
