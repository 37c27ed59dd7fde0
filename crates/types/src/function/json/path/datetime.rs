//! The method `datetime()`: the date or time that a string is, by a template or by the first of the usual ones.

use super::evaluation::{Evaluation, Found, Scope};
use super::fault::{Fault, Outcome, Problem};
use super::item::Item;
use super::moment::Moment;
use crate::error::{EngineError, SqlState, shown};
use crate::function::datetime::check_standard;
use crate::value::json::NodeId;

/// The templates that `datetime()` tries, in this order.
const TEMPLATES: [&str; 19] = [
    "yyyy-mm-dd",
    "HH24:MI:SS.USTZH:TZM",
    "HH24:MI:SS.USTZH",
    "HH24:MI:SS.US",
    "HH24:MI:SSTZH:TZM",
    "HH24:MI:SSTZH",
    "HH24:MI:SS",
    "yyyy-mm-dd HH24:MI:SS.USTZH:TZM",
    "yyyy-mm-dd HH24:MI:SS.USTZH",
    "yyyy-mm-dd HH24:MI:SS.US",
    "yyyy-mm-dd HH24:MI:SSTZH:TZM",
    "yyyy-mm-dd HH24:MI:SSTZH",
    "yyyy-mm-dd HH24:MI:SS",
    "yyyy-mm-dd\"T\"HH24:MI:SS.USTZH:TZM",
    "yyyy-mm-dd\"T\"HH24:MI:SS.USTZH",
    "yyyy-mm-dd\"T\"HH24:MI:SS.US",
    "yyyy-mm-dd\"T\"HH24:MI:SSTZH:TZM",
    "yyyy-mm-dd\"T\"HH24:MI:SSTZH",
    "yyyy-mm-dd\"T\"HH24:MI:SS",
];

/// The error of a template; a part of one that is not supported is told in any case.
fn of_template(error: EngineError) -> Fault {
    match error.sqlstate() == SqlState::FEATURE_NOT_SUPPORTED {
        true => error.into(),
        false => Fault::Value(Box::new(error)),
    }
}

impl<'e> Evaluation<'e> {
    /// `datetime()`
    pub(super) fn datetime<'v>(
        &self,
        id: NodeId,
        template: Option<&str>,
        item: &Item<'v>,
        scope: &Scope<'v>,
        found: Found<'_, 'v>,
    ) -> Outcome
    where
        'e: 'v,
    {
        self.session.check_interrupts()?;
        let text = item.text().ok_or_else(|| self.fault(id, Problem::NotAString))?;
        let moment = match template {
            Some(template) => {
                check_standard(template)?;
                Moment::read(text, template).map_err(of_template)?
            }
            None => {
                let read = TEMPLATES
                    .iter()
                    .find_map(|template| Moment::read(text, template).ok());
                read.ok_or_else(|| Fault::Value(Box::new(not_recognized(text))))?
            }
        };
        self.behind(id, Item::Moment(moment), scope, found)
    }
}

#[cold]
fn not_recognized(text: &str) -> EngineError {
    EngineError::new(
        SqlState::from_code("22031"),
        format!("datetime format is not recognized: \"{}\"", shown(text)),
    )
    .with_hint("Use a datetime template argument to specify the input data format.")
}
