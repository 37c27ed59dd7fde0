//! The views of sessions and of latches.

use crate::shop;

#[test]
fn activity_shows_sessions_and_what_they_wait_for() {
    let fixture = shop();
    fixture.play(
        "alice: set application_name = 'till 1' => SET
         alice: begin => BEGIN
         alice: update items set stock = 1 where id = 1 => UPDATE 1
         bob:   update items set stock = 2 where id = 1 => waits
         carol: select state, wait_event_type, wait_event from pg_stat_activity where query like 'update%set stock = 2%' => active|Lock|transactionid
         carol: select application_name, state from pg_stat_activity where state = 'idle in transaction' => till 1|idle in transaction
         carol: select count(*) from pg_stat_activity where backend_xid is not null => 2
         alice: rollback => ROLLBACK
         bob    => UPDATE 1",
    );
}

/// Each class of latches tells how often it was acquired.
#[test]
fn latches_count_what_they_are_asked_for() {
    let fixture = shop();
    fixture.play(
        "alice: select count(*) from clearway_latches where name = 'XidGen' and mode = 'exclusive' and acquisitions > 0 => 1
         alice: select count(*) from clearway_latches where name = 'ProcArray' and mode = 'until-free' and acquisitions is null => 1
         alice: select count(*) from clearway_latches where conflicts = 0 and wait_p99_ns is not null => 0",
    );
}
