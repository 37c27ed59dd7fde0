//! `pg_aggregate`: the aggregates that there are, under PostgreSQL's numbers.
//!
//! The functions that make an aggregate of its rows are PostgreSQL's own, and 0 where there is none here to call.

use super::Sources;
use super::functions;
use super::operators;
use super::rows::{NULL, Rows, boolean, int2, int4, oid, text};

/// aggfnoid, aggkind, aggnumdirectargs, aggtransfn, aggfinalfn, aggcombinefn, aggserialfn, aggdeserialfn, aggmtransfn,
/// aggminvtransfn, aggmfinalfn, aggfinalextra, aggmfinalextra, aggfinalmodify, aggmfinalmodify, aggsortop, aggtranstype,
/// aggtransspace, aggmtranstype, aggmtransspace, agginitval, aggminitval; between tabulators, `-` for NULL
const LINES: &str = include_str!("data/aggregates.txt");

/// The columns of a line that are functions.
const FUNCTIONS: [(usize, &str); 8] = [
    (3, "aggtransfn"),
    (4, "aggfinalfn"),
    (5, "aggcombinefn"),
    (6, "aggserialfn"),
    (7, "aggdeserialfn"),
    (8, "aggmtransfn"),
    (9, "aggminvtransfn"),
    (10, "aggmfinalfn"),
];

/// The fields of a line.
fn fields(line: &'static str) -> Option<[&'static str; 22]> {
    line.split('\t').collect::<Vec<_>>().try_into().ok()
}

/// `pg_aggregate`
pub(super) fn aggregates(_: &Sources<'_>, rows: &mut Rows) {
    for fields in LINES.lines().filter_map(fields) {
        let number = |at: usize| fields[at].parse::<u32>().unwrap_or(0);
        if functions::existing(number(0)) == 0 {
            continue;
        }
        let function = |(at, name): (usize, &'static str)| (name, oid(functions::existing(number(at))));
        let or_null = |field: &str| if field == "-" { NULL } else { text(field) };
        let [
            transition,
            last,
            combined,
            written,
            read,
            moved,
            taken,
            moved_last,
        ] = FUNCTIONS.map(function);
        rows.push([
            ("aggfnoid", oid(number(0))),
            ("aggkind", text(fields[1])),
            ("aggnumdirectargs", int2(number(2) as i16)),
            transition,
            last,
            combined,
            written,
            read,
            moved,
            taken,
            moved_last,
            ("aggfinalextra", boolean(fields[11] == "t")),
            ("aggmfinalextra", boolean(fields[12] == "t")),
            ("aggfinalmodify", text(fields[13])),
            ("aggmfinalmodify", text(fields[14])),
            ("aggsortop", oid(operators::existing(number(15)))),
            ("aggtranstype", oid(number(16))),
            ("aggtransspace", int4(number(17) as i32)),
            ("aggmtranstype", oid(number(18))),
            ("aggmtransspace", int4(number(19) as i32)),
            ("agginitval", or_null(fields[20])),
            ("aggminitval", or_null(fields[21])),
        ]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_and_sorted() {
        let read: Vec<_> = LINES.lines().filter_map(fields).collect();
        assert_eq!(read.len(), LINES.lines().count());
        assert!(read.is_sorted_by_key(|fields| fields[0].parse::<u32>().unwrap_or(0)));
        let number = |field: &str| field.parse::<u32>().is_ok();
        assert!(
            read.iter()
                .all(|fields| fields[2..11].iter().all(|field| number(field)))
        );
    }
}
