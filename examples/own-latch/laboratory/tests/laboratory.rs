//! The ticket latch goes through the laboratory as Clearway's own latches do.
//!
//! Seen to fail: a latch whose `acquire` does nothing ends the bench with an error, as data is torn.

use std::time::Duration;

use clearway_lab::LabError;
use clearway_lab::latches::table;
use clearway_lab::simulate::text;
use own_latch_laboratory::{add_ticket_latch, measured, simulated};

#[test]
fn it_is_measured_and_simulated_beside_the_others() {
    add_ticket_latch().unwrap();
    assert!(matches!(add_ticket_latch(), Err(LabError::LatchNameTaken { .. })));

    let bench = measured(vec![1, 3], Duration::from_millis(5), 1).unwrap();
    let mut of_ticket = bench.cells.iter().filter(|cell| cell.latch == "ticket");
    assert!(
        of_ticket.clone().count() == 4 && of_ticket.all(|cell| cell.operations > 0.0 && cell.ratio.is_some())
    );
    assert!(table::text(&bench, true).contains("ticket"));

    let result = simulated(Some(vec![1, 8])).unwrap();
    assert!(
        result.points.iter().all(|point| point.transactions > 0),
        "{result:?}"
    );
    assert!(text(&result).contains("ticket"));
    assert_eq!(
        simulated(Some(vec![8])).unwrap().points[2].transactions,
        result.points[5].transactions
    );
}
