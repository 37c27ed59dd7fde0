//! CREATE TYPE, ALTER TYPE and DROP TYPE.

use crate::error::{EngineError, Result};
use crate::lex::Kind;
use crate::parse::utility::reader::{Name, Reader};
use crate::parse::utility::schema::RoleName;
pub(crate) use crate::plan::DomainChange;
use crate::value::user_type::LabelPlace;

/// A statement about types, with the names as they are written.
#[derive(Debug, Clone)]
pub(crate) enum TypeStatement {
    CreateEnum {
        name: Name,
        labels: Vec<String>,
    },
    CreateComposite {
        name: Name,
        /// Names and types of its attributes.
        attributes: Vec<(String, String)>,
    },
    CreateDomain {
        name: Name,
        /// The base type.
        base: String,
        parts: DomainParts,
    },
    AlterType {
        name: Name,
        change: TypeChange,
        /// ALTER DOMAIN
        domain: bool,
    },
    AlterDomain {
        name: Name,
        change: DomainChange,
    },
    DropType {
        names: Vec<Name>,
        if_exists: bool,
        cascade: bool,
        /// DROP DOMAIN
        domains: bool,
    },
}

/// The constraints of a domain as they are written.
#[derive(Debug, Clone, Default)]
pub(crate) struct DomainParts {
    pub default: Option<String>,
    pub not_null: Option<bool>,
    /// Names and conditions.
    pub checks: Vec<(Option<String>, String)>,
}

/// The change that ALTER TYPE makes.
#[derive(Debug, Clone)]
pub(crate) enum TypeChange {
    AddLabel {
        label: String,
        place: LabelPlace,
        if_not_exists: bool,
    },
    RenameLabel {
        from: String,
        to: String,
    },
    Rename(String),
    RenameAttribute {
        from: String,
        to: String,
        /// The columns of typed tables too.
        cascade: bool,
    },
    /// Each with CASCADE, which changes typed tables too.
    Attributes(Vec<(AttributeAction, bool)>),
    SetSchema(Name),
    Owner(RoleName),
}

/// A change of an attribute of a composite type.
#[derive(Debug, Clone)]
pub(crate) enum AttributeAction {
    Add { name: String, data_type: String },
    Drop { name: String, if_exists: bool },
    SetType { name: String, data_type: String },
}

impl Reader<'_> {
    /// CREATE TYPE, behind both words.
    pub(super) fn create_type(&mut self) -> Result<TypeStatement> {
        let name = self.name()?;
        if self.peek().is_none() {
            return Err(EngineError::not_supported("a type without a definition"));
        }
        if self.peek() == Some(&Kind::Symbol('(')) {
            return Err(EngineError::not_supported(
                "CREATE TYPE with functions of its own",
            ));
        }
        self.expect("as")?;
        if self.eat("enum") {
            self.expect_symbol('(')?;
            let mut labels = Vec::new();
            if !self.eat_symbol(')') {
                labels.push(self.string()?);
                while self.eat_symbol(',') {
                    labels.push(self.string()?);
                }
                self.expect_symbol(')')?;
            }
            return Ok(TypeStatement::CreateEnum { name, labels });
        }
        if self.eat("range") {
            return Err(EngineError::not_supported("CREATE TYPE … AS RANGE"));
        }
        Ok(TypeStatement::CreateComposite {
            name,
            attributes: self.attributes()?,
        })
    }

    /// `(a integer, b text)`
    fn attributes(&mut self) -> Result<Vec<(String, String)>> {
        self.expect_symbol('(')?;
        let mut attributes = Vec::new();
        if self.eat_symbol(')') {
            return Ok(attributes);
        }
        loop {
            let name = self.identifier()?.0;
            attributes.push((name, self.attribute_type()?));
            if !self.eat_symbol(',') {
                self.expect_symbol(')')?;
                return Ok(attributes);
            }
        }
    }

    /// The type of an attribute, as far as COLLATE, a comma or what ends the attribute.
    fn attribute_type(&mut self) -> Result<String> {
        let start = self.at;
        let mut depth = 0;
        while let Some(kind) = self.peek() {
            match kind {
                Kind::Symbol('(' | '[') => depth += 1,
                Kind::Symbol(')' | ',') if depth == 0 => break,
                Kind::Symbol(')' | ']') => depth -= 1,
                Kind::Word(word) if matches!(word.as_str(), "collate" | "cascade" | "restrict") => break,
                _ => {}
            }
            self.at += 1;
        }
        let written = self.written_from(start)?;
        if self.eat("collate") {
            let collation = self.name()?.name;
            if !matches!(collation.as_str(), "C" | "default" | "POSIX") {
                return Err(EngineError::not_supported(format!("the collation {collation}")));
            }
        }
        Ok(written)
    }

    /// Changes of attributes, up to the end of the statement.
    fn attribute_actions(&mut self) -> Result<Vec<(AttributeAction, bool)>> {
        let mut actions = Vec::new();
        loop {
            let action = if self.eat("add attribute") {
                AttributeAction::Add {
                    name: self.identifier()?.0,
                    data_type: self.attribute_type()?,
                }
            } else if self.eat("drop attribute") {
                AttributeAction::Drop {
                    if_exists: self.eat("if exists"),
                    name: self.identifier()?.0,
                }
            } else {
                self.expect("alter attribute")?;
                let name = self.identifier()?.0;
                let _ = self.eat("set data");
                self.expect("type")?;
                AttributeAction::SetType {
                    name,
                    data_type: self.attribute_type()?,
                }
            };
            actions.push((action, self.cascade()));
            if !self.eat_symbol(',') {
                return Ok(actions);
            }
        }
    }

    /// CASCADE or RESTRICT, if either comes next.
    fn cascade(&mut self) -> bool {
        let cascade = self.eat("cascade");
        let _ = cascade || self.eat("restrict");
        cascade
    }

    /// ALTER TYPE, behind both words.
    pub(super) fn alter_type(&mut self) -> Result<TypeStatement> {
        let name = self.name()?;
        let change = if self.eat("add value") {
            let if_not_exists = self.eat("if not exists");
            let label = self.string()?;
            let place = match () {
                () if self.eat("before") => LabelPlace::Before(self.string()?),
                () if self.eat("after") => LabelPlace::After(self.string()?),
                () => LabelPlace::Last,
            };
            TypeChange::AddLabel {
                label,
                place,
                if_not_exists,
            }
        } else if self.eat("rename value") {
            let from = self.string()?;
            self.expect("to")?;
            let to = self.string()?;
            TypeChange::RenameLabel { from, to }
        } else if self.eat("rename attribute") {
            let from = self.identifier()?.0;
            self.expect("to")?;
            let to = self.identifier()?.0;
            let cascade = self.cascade();
            TypeChange::RenameAttribute { from, to, cascade }
        } else if ["add attribute", "drop attribute", "alter attribute"]
            .iter()
            .any(|words| self.begins(words))
        {
            TypeChange::Attributes(self.attribute_actions()?)
        } else if self.eat("rename to") {
            TypeChange::Rename(self.identifier()?.0)
        } else if self.eat("set schema") {
            TypeChange::SetSchema(self.name()?)
        } else if self.eat("owner to") {
            TypeChange::Owner(self.role()?)
        } else {
            return Err(EngineError::not_supported("ALTER TYPE in this form"));
        };
        Ok(TypeStatement::AlterType {
            name,
            change,
            domain: false,
        })
    }

    /// DROP TYPE or DROP DOMAIN, behind both words.
    pub(super) fn drop_type(&mut self, domains: bool) -> Result<TypeStatement> {
        let if_exists = self.eat("if exists");
        let names = self.names()?;
        let cascade = self.cascade();
        Ok(TypeStatement::DropType {
            names,
            if_exists,
            cascade,
            domains,
        })
    }
}
