# DBD::Pg: parameters, types, metadata of DBI, COPY, transactions, notices; DBIx::Class, a mapper over it.

use strict;
use warnings;
use utf8;
use DBI;
use DBD::Pg qw(:pg_types);
use JSON::PP;
use Data::Dumper;

$| = 1;
binmode(STDOUT, ":utf8");
$Data::Dumper::Indent = 0;
$Data::Dumper::Terse = 1;
$Data::Dumper::Sortkeys = 1;

my (%checks, @names, @opened);

# A check is a function that gets a function which notes what the driver showed.
sub check { my ($name, $work) = @_; push @names, $name; $checks{$name} = $work }

sub address { return "dbi:Pg:dbname=$ENV{PGDATABASE};host=127.0.0.1;port=$ENV{PGPORT}" }

sub connected {
    my $found = DBI->connect(address(), $ENV{PGUSER}, "none", { RaiseError => 1, PrintError => 0, PrintWarn => 0, AutoCommit => 1, pg_enable_utf8 => 1, @_ });
    push @opened, $found;
    return $found;
}

sub people {
    my $db = connected(@_);
    $db->do("create table people (id int primary key, name varchar(40) not null, height numeric(5,2) default 1, born date)");
    $db->do("insert into people select n, 'name ' || n, n / 4.0 from generate_series(1, 10) n");
    $db->commit unless $db->{AutoCommit};
    return $db;
}

# Notes the SQLSTATE and the message with which the work must fail.
sub refused {
    my ($see, $db, $work) = @_;
    die "no error" if eval { $work->(); 1 };
    $see->("refused", $db->state, (split /\n/, $db->errstr // $@)[0]);
}

check "connects" => sub { my $see = shift; my $db = connected(); $see->($db->ping, int($db->{pg_server_version} / 10000), $db->get_info(17), $db->{pg_db}) };

check "types" => sub {
    my $see = shift;
    my $db = connected();
    for my $pair (["int", 5], ["bigint", 2**40], ["numeric", "1.50"], ["text", "é'\\"], ["bool", 1], ["date", "2024-02-29"], ["timestamptz", "2024-02-29 01:02:03+00"], ["float8", 2.5], ["interval", "1 day 02:00"], ["uuid", "12345678-1234-5678-1234-567812345678"], ["text", undef]) {
        $see->($pair->[0], $db->selectrow_array("select ?::$pair->[0]", undef, $pair->[1]));
    }
};

check "bytea" => sub {
    my $see = shift;
    my $db = connected();
    my $made = $db->prepare("select ?::bytea, length(?::bytea)");
    $made->bind_param($_, "\0\xff\\", { pg_type => PG_BYTEA }) for 1, 2;
    $made->execute;
    my ($bytes, $length) = $made->fetchrow_array;
    $see->(unpack("H*", $bytes), $length);
};

check "arrays" => sub { my $see = shift; my $db = connected(); $see->($db->selectrow_array("select ?::int[], array['a', null, 'b,c']", undef, [1, undef, 3])) };

check "json" => sub { my $see = shift; $see->(connected()->selectrow_array("select ?::jsonb -> 'a', '[1]'::json", undef, '{"a": [1]}')) };

check "placeholders of each kind" => sub {
    my $see = shift;
    my $db = people();
    $see->($db->selectrow_array("select name from people where id = ?", undef, 2));
    $see->($db->selectrow_array('select name from people where id = $1 or id = $1', undef, 3));
    my $made = $db->prepare("select name from people where id = :id");
    $made->bind_param(":id", 4);
    $made->execute;
    $see->($made->fetchrow_array);
};

check "rows in each form" => sub {
    my $see = shift;
    my $db = people();
    my $query = "select id, name from people where id < 3 order by id";
    $see->($db->selectall_arrayref($query), $db->selectall_arrayref($query, { Slice => {} }), $db->selectall_hashref($query, "id"), $db->selectcol_arrayref($query));
};

check "server side preparation" => sub {
    my $see = shift;
    my $db = people(pg_server_prepare => 1, pg_switch_prepared => 1);
    my $made = $db->prepare("select name, height from people where id = ?");
    for my $id (1, 2, 99) { $made->execute($id); $see->($made->rows, $made->fetchrow_array) }
    $see->($made->{NAME}, $made->{TYPE}, $made->{PRECISION}, $made->{SCALE}, $made->{NULLABLE}, $made->{pg_type});
};

check "counts of rows and returning" => sub {
    my $see = shift;
    my $db = people();
    $see->($db->do("update people set height = 2 where id < 4"), $db->do("delete from people where id > 99"), $db->selectrow_array("insert into people (id, name) values (50, 'x') returning height"));
    my $made = $db->prepare("insert into people (id, name) values (?, ?)");
    $see->($made->execute_array({}, [60, 61, 62], ["a", "b", "c"]));
};

check "last insert id" => sub {
    my $see = shift;
    my $db = connected();
    $db->do("create table t (id serial primary key, s text)");
    $db->do("insert into t (s) values ('a'), ('b')");
    $see->($db->last_insert_id(undef, undef, "t", undef));
};

check "transactions" => sub {
    my $see = shift;
    my $db = people(AutoCommit => 0);
    $db->do("delete from people");
    $db->rollback;
    $see->($db->selectrow_array("select count(*) from people"), $db->{pg_INV_READ} ? 1 : 0);
    refused($see, $db, sub { $db->do("select 1 / 0") });
    refused($see, $db, sub { $db->do("select 1") });
};

check "savepoints" => sub {
    my $see = shift;
    my $db = people(AutoCommit => 0);
    $db->pg_savepoint("one");
    $db->do("delete from people");
    $db->pg_rollback_to("one");
    $db->pg_release("one");
    $see->($db->selectrow_array("select count(*) from people"));
};

check "errors" => sub {
    my $see = shift;
    my $db = people();
    for my $text ("insert into people values (1, 'x')", "select nothing from people", "select * from nowhere", "insert into people (id) values (99)") {
        refused($see, $db, sub { $db->do($text) });
        $see->(map { $db->pg_error_field($_) } qw(pg_diag_severity pg_diag_table_name pg_diag_column_name pg_diag_constraint_name pg_diag_message_detail pg_diag_statement_position));
    }
};

check "copy in and out" => sub {
    my $see = shift;
    my $db = people();
    $db->do("copy people (id, name) from stdin");
    $db->pg_putcopydata("70\tseventy\n");
    $db->pg_putcopydata("71\tbär\n");
    $see->($db->pg_putcopyend);
    $db->do("copy (select id, name from people where id >= 70 order by id) to stdout");
    my $line;
    $see->($line) while $db->pg_getcopydata($line) >= 0;
};

check "asynchronous query" => sub {
    my $see = shift;
    my $db = people();
    my $made = $db->prepare("select count(*) from people", { pg_async => 1 });
    $made->execute;
    $see->($db->pg_result, $made->fetchrow_array);
};

check "table info" => sub {
    my $see = shift;
    my $db = people();
    $db->do("create view tall as select * from people");
    $see->(@$_) for @{$db->table_info(undef, "public", "%", "TABLE,VIEW")->fetchall_arrayref([1, 2, 3])};
};

check "column info" => sub { my $see = shift; $see->(@$_) for @{people()->column_info(undef, "public", "people", "%")->fetchall_arrayref([3, 4, 5, 6, 8, 10, 12])} };

check "primary key info" => sub { my $see = shift; my $db = people(); $see->($db->primary_key(undef, "public", "people")); $see->(@$_) for @{$db->primary_key_info(undef, "public", "people")->fetchall_arrayref([2, 3, 4, 5])} };

check "foreign key info" => sub {
    my $see = shift;
    my $db = people();
    $db->do("create table c (p int references people)");
    $see->(@$_) for @{$db->foreign_key_info(undef, undef, "people", undef, undef, "c")->fetchall_arrayref([2, 3, 6, 7])};
};

check "statistics info" => sub {
    my $see = shift;
    my $db = people();
    $db->do("create unique index people_name on people (name)");
    $see->(@$_[2, 3, 5, 6, 7, 8]) for grep { defined $_->[5] } @{$db->statistics_info(undef, "public", "people", 0, 1)->fetchall_arrayref};
};

check "type info" => sub { my $see = shift; $see->(scalar @{connected()->type_info_all} > 10, map { $_->{TYPE_NAME} } connected()->type_info(DBI::SQL_INTEGER)) };

check "notifications" => sub {
    my $see = shift;
    my $db = connected();
    $db->do("listen news");
    $db->do("notify news, 'hello'");
    my $one = $db->pg_notifies;
    $see->($one->[0], $one->[2]);
};

check "large objects" => sub {
    my $see = shift;
    my $db = connected(AutoCommit => 0);
    my $oid = $db->pg_lo_creat($db->{pg_INV_WRITE} // 0x20000);
    my $file = $db->pg_lo_open($oid, 0x60000);
    $see->($db->pg_lo_write($file, "hello", 5));
    $db->rollback;
};

check "quoting" => sub { my $see = shift; my $db = connected(); $see->($db->quote("it's \\"), $db->quote_identifier("a b", "c"), $db->selectrow_array("select " . $db->quote("it's \\"))) };

# DBIx::Class.

{
    package Shop::Item;
    use base "DBIx::Class::Core";
    __PACKAGE__->table("items");
    __PACKAGE__->add_columns(id => { data_type => "integer", is_auto_increment => 1 }, name => { data_type => "varchar" }, price => { data_type => "numeric", is_nullable => 1 });
    __PACKAGE__->set_primary_key("id");
    __PACKAGE__->add_unique_constraint(by_name => ["name"]);
    package Shop;
    use base "DBIx::Class::Schema";
    __PACKAGE__->register_class(Item => "Shop::Item");
}

sub shop {
    my $shop = Shop->connect(address(), $ENV{PGUSER}, "none", { RaiseError => 1, PrintError => 0, auto_savepoint => $_[0] });
    $shop->storage->dbh->do("create table items (id serial primary key, name varchar(40) unique, price numeric)");
    $shop->resultset("Item")->create({ name => "item $_", price => $_ / 2 }) for 1 .. 6;
    push @opened, $shop->storage->dbh;
    return $shop;
}

check "DBIx::Class finds and changes" => sub {
    my $see = shift;
    my $items = shop()->resultset("Item");
    $see->(map { $_->name } $items->search({ price => { ">" => 1 } }, { order_by => { -desc => "id" }, rows => 2, page => 2 }));
    $see->($items->count({ name => { -like => "item%" } }), $items->get_column("price")->sum, $items->find({ name => "item 2" }, { key => "by_name" })->id);
    $items->find(1)->update({ name => "changed" });
    $see->($items->find(1)->name, $items->search({ id => { -in => [2, 3] } })->delete, $items->find_or_create({ name => "new" })->id, $items->update_or_create({ name => "new", price => 3 })->price);
};

check "DBIx::Class transactions" => sub {
    my $see = shift;
    my $shop = shop();
    eval { $shop->txn_do(sub { $shop->resultset("Item")->delete; die "no\n" }) };
    $see->($@, $shop->resultset("Item")->count);
};

check "DBIx::Class savepoints" => sub {
    my $see = shift;
    my $shop = shop(1);
    $shop->txn_do(sub { eval { $shop->txn_do(sub { $shop->resultset("Item")->delete; die "no\n" }) } });
    $see->($shop->resultset("Item")->count);
};

check "DBIx::Class many rows" => sub { my $see = shift; my $shop = shop(); $shop->resultset("Item")->populate([["name", "price"], map { ["m$_", $_] } 1 .. 200]); $see->($shop->resultset("Item")->count) };

my $json = JSON::PP->new->canonical;
print "::", $json->encode(\@names), "\n";
while (my $name = <STDIN>) {
    chomp $name;
    my @seen;
    my $see = sub { push @seen, join " ", map { ref $_ ? Dumper($_) : $_ // "undef" } @_ };
    my %answer = (seen => \@seen);
    unless (eval { local $SIG{ALRM} = sub { die "no end after 20 s\n" }; alarm 20; $checks{$name}->($see); 1 }) {
        my $first = (split /\n/, "$@")[0];
        $answer{error} = ($DBI::state || "") . " $first" =~ s/ at \S+ line \d+.*//r;
    }
    alarm 0;
    eval { $_->disconnect } for splice @opened;
    print "\n::", $json->encode(\%answer), "\n";
}
