//! System columns of rows that another transaction replaces while a statement waits: they are those of the newest version.

use crate::accounts;

/// A row's version as an application's token of optimistic locking (`xmin`) or address (`ctid`): the second writer
/// changes nothing.
#[test]
fn a_version_that_has_been_replaced_is_not_found() {
    for version in ["ctid", "xmin"] {
        let of_row_1 = format!("{version} = (select {version} from accounts where id = 1)");
        for (statement, tag) in [
            ("update accounts set balance = 1 where", "UPDATE 0"),
            ("delete from accounts where", "DELETE 0"),
            ("select balance from accounts where", ""),
        ] {
            let clause = if tag.is_empty() { "for update" } else { "" };
            accounts().play(&format!(
                "alice: begin => BEGIN
                 alice: update accounts set balance = 70 where id = 1 => UPDATE 1
                 bob:   {statement} id = 1 and {of_row_1} {clause} => waits
                 alice: commit => COMMIT
                 bob    => {tag}
                 bob:   select balance from accounts where id = 1 => 70"
            ));
        }
    }
}

/// The statement gives the place of the version that it has locked or made, not of the one that it has seen.
#[test]
fn places_are_those_of_the_newest_version() {
    let is_newest = "(select ctid = x.c from accounts where id = 1)";
    accounts().play(&format!(
        "alice: begin => BEGIN
         alice: update accounts set balance = 70 where id = 1 => UPDATE 1
         bob:   begin => BEGIN
         bob:   create temporary table x as select ctid as c from accounts where id = 1 for update => waits
         alice: commit => COMMIT
         bob    => SELECT 1
         bob:   select {is_newest} from x => t
         bob:   update x set c = null => UPDATE 1
         bob:   with u as (update accounts set balance = 71 where id = 1 returning ctid as c) \
                update x set c = u.c from u => UPDATE 1
         bob:   select {is_newest} from x => t
         bob:   commit => COMMIT"
    ));
}
