//! CLUSTER ON, REPLICA IDENTITY, SET STATISTICS and their kin, of ALTER TABLE and ALTER INDEX.

use crate::catalog::ReplicaIdentity;
use crate::error::{EngineError, Result, SqlState};
use crate::lex::Kind;
use crate::parse::utility::reader::Reader;
use crate::parse::utility::{Name, NamedDefinition};
use crate::plan::TableMark;

impl Reader<'_> {
    /// An action of ALTER TABLE, if one comes next that is read here.
    pub(super) fn table_mark(&mut self) -> Result<Option<TableMark>> {
        Ok(Some(if self.eat("cluster on") {
            TableMark::Cluster(Some(self.identifier()?.0))
        } else if self.eat("set without cluster") {
            TableMark::Cluster(None)
        } else if self.eat("set without oids") {
            TableMark::WithoutOids
        } else if self.eat("replica identity") {
            if self.eat("using index") {
                TableMark::ReplicaIdentityIndex(self.identifier()?.0)
            } else if self.eat("default") {
                TableMark::ReplicaIdentity(ReplicaIdentity::Default)
            } else if self.eat("full") {
                TableMark::ReplicaIdentity(ReplicaIdentity::Full)
            } else {
                self.expect("nothing")?;
                TableMark::ReplicaIdentity(ReplicaIdentity::Nothing)
            }
        } else {
            return Ok(None);
        }))
    }

    /// ALTER COLUMN … SET STATISTICS of an index, behind its name.
    pub(super) fn index_statistics(&mut self, index: Name, if_exists: bool) -> Result<NamedDefinition> {
        let _ = self.eat("column");
        let column = self.signed_integer()?;
        if !(1..=i64::from(i16::MAX)).contains(&column) {
            return Err(EngineError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("column number must be in range from 1 to {}", i16::MAX),
            ));
        }
        self.expect("set statistics")?;
        let target = self.signed_integer()?;
        Ok(NamedDefinition::IndexStatistics {
            index,
            if_exists,
            column,
            target,
        })
    }

    /// An integer with or without a sign.
    pub(super) fn signed_integer(&mut self) -> Result<i64> {
        let negative = self.eat_symbol('-');
        let _ = !negative && self.eat_symbol('+');
        let Some(Kind::Number(digits)) = self.peek() else {
            return Err(self.syntax_error());
        };
        let Ok(number) = digits.parse::<i32>() else {
            return Err(self.syntax_error());
        };
        self.at += 1;
        Ok(if negative {
            -i64::from(number)
        } else {
            i64::from(number)
        })
    }
}
