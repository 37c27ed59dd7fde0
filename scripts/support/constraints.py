"""Statements of a transaction that lean on constraints: an upsert, a savepoint that is taken back, a foreign key that is checked
at the commit and cascades, and a deferrable key that two rows exchange. Whatever becomes of the server, what is committed
satisfies them (`wrong`)."""

PARENTS = 20
SEATS = 20

TABLES = f"""
create table parents (id int primary key, children int not null);
create table children (
    round int, client int, seq int, kept bool not null,
    parent int not null references parents on delete cascade deferrable initially deferred,
    primary key (round, client, seq)
);
create index children_by_parent on children (parent);
create table seats (id int primary key, place int not null unique deferrable initially deferred);
insert into seats select g, g from generate_series(1, {SEATS}) g;
"""

# For pgbench, with the variables `round`, `client` and `seq`. A parent goes in one of five transactions, with its children. Rows
# of `parents` and `seats` are locked in no order: the statements belong behind a row that all transactions of a load update.
VARIABLES = rf"""
\set parent random(1, {PARENTS})
\set gone random(1, {5 * PARENTS})
\set seat 2 * random(1, {SEATS // 2})
"""
STATEMENTS = """
INSERT INTO children VALUES (:round, :client, :seq, true, :parent);
INSERT INTO parents VALUES (:parent, 1) ON CONFLICT (id) DO UPDATE SET children = parents.children + excluded.children;
SAVEPOINT before;
INSERT INTO children VALUES (:round, :client, -:seq, false, :parent);
UPDATE parents SET children = -1 WHERE id = :parent;
UPDATE seats SET place = -1 WHERE id = :seat;
ROLLBACK TO before;
DELETE FROM parents WHERE id = :gone;
UPDATE seats SET place = (SELECT other.place FROM seats other WHERE other.id = 2 * :seat - 1 - seats.id)
    WHERE id IN (:seat - 1, :seat);
"""

# The order in which the rows of a table can be compared with those of another server.
ORDERS = {"parents": "id", "children": "round, client, seq", "seats": "id"}

# Each finds nothing.
WRONG = {
    "a child without a parent": "select c.* from children c left join parents p on p.id = c.parent where p.id is null",
    "a parent that counts others than its children":
        "select p.*, count(c.parent) from parents p left join children c on c.parent = p.id group by p.id, p.children"
        " having p.children <> count(c.parent)",
    "a child that was taken back": "select * from children where not kept or seq < 0",
    "two at one seat, or a seat that is lost":
        "select count(*), count(distinct place), min(place), max(place) from seats having"
        f" (count(*), count(distinct place), min(place), max(place)) <> ({SEATS}, {SEATS}, 1, {SEATS})",
}


def wrong(server):
    """What is not as the constraints say, or None."""
    for what, query in WRONG.items():
        found = server.sql(query)
        if found:
            return f"{what}: {found[:500]}"
    return None
