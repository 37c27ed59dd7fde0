//! The types of a state of the catalog, as a thread that binds or runs statements over it asks for them.

use std::sync::Arc;

use crate::settings::PlanningSettings;
use clearway_sql::function::quote_identifier;
use clearway_sql::value::user_type::UserType;
use clearway_sql::value::user_type::in_force::{self, Token, TypeSource};
use clearway_sql::value::{DataType, TypeOid};

use super::CatalogState;

/// The types of a state of the catalog, as a search path shows them.
struct VisibleTypes {
    state: Arc<CatalogState>,
    /// The settings with the path, which the token names by their place, and the user; without them names are looked for
    /// in `public`.
    path: Option<(Arc<PlanningSettings>, String)>,
}

impl VisibleTypes {
    /// The first that has this name in the schemas of the path.
    fn first(&self, name: &str) -> Option<DataType> {
        match &self.path {
            Some((planning, user)) => {
                let mut schemas = self.state.searched(&planning.path, user);
                schemas.find_map(|schema| self.state.type_in(schema.oid, name))
            }
            None => {
                let public = self.state.schema_named("public")?;
                self.state.type_in(public.oid, name)
            }
        }
    }
}

impl TypeSource for VisibleTypes {
    fn get(&self, oid: TypeOid) -> Option<Arc<UserType>> {
        self.state.user_type(oid)
    }

    fn named(&self, schema: Option<&str>, name: &str) -> Option<DataType> {
        match schema {
            Some(schema) => self.state.type_in(self.state.schema_named(schema)?.oid, name),
            None => self.first(name),
        }
    }

    fn shown(&self, of: &UserType) -> String {
        let name = quote_identifier(&of.name);
        match self.is_visible(of) {
            true => name,
            false => format!("{}.{name}", quote_identifier(&of.schema)),
        }
    }

    fn array_name(&self, of: &UserType) -> String {
        self.state.array_name_in(of.schema_oid, &of.name)
    }

    fn is_visible(&self, of: &UserType) -> bool {
        DataType::named(&of.name).is_none() && self.first(&of.name) == Some(of.data_type())
    }
}

/// Puts the types of a state in force where there is no session: the definitions that name them are being read.
pub(crate) fn put_in_force(state: &CatalogState) {
    let token = Token {
        version: state.version(),
        ..Token::default()
    };
    let state = Arc::new(state.clone());
    in_force::set(token, Arc::new(VisibleTypes { state, path: None }));
}

/// Puts the types of a state in force as a search path shows them.
pub(crate) fn put_visible_in_force(
    token: Token,
    state: Arc<CatalogState>,
    planning: Arc<PlanningSettings>,
    user: &str,
) {
    let path = Some((planning, user.to_owned()));
    in_force::set(token, Arc::new(VisibleTypes { state, path }));
}
