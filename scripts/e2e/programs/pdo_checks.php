<?php
// PHP's PDO for PostgreSQL, and its older functions (pg_*).

ini_set("display_errors", "stderr");
error_reporting(E_ALL & ~E_DEPRECATED & ~E_WARNING & ~E_NOTICE);

$checks = [];
$opened = [];

function connect(array $options = []): PDO
{
    $place = sprintf("pgsql:host=127.0.0.1;port=%s;dbname=%s", getenv("PGPORT"), getenv("PGDATABASE"));
    return new PDO($place, getenv("PGUSER"), "none", $options + [PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION]);
}

function people(array $options = []): PDO
{
    $db = connect($options);
    $db->exec("create table people (id serial primary key, name varchar(40) not null unique, height numeric(5,2), born date)");
    $db->exec("insert into people (name, height) select 'name ' || n, n / 4.0 from generate_series(1, 10) n");
    return $db;
}

// Notes the SQLSTATE and the message with which the work must fail.
function refused(callable $see, callable $work): void
{
    try {
        $work();
    } catch (PDOException $error) {
        $see("refused", $error->errorInfo[0] ?? $error->getCode(), strtok($error->errorInfo[2] ?? $error->getMessage(), "\n"));
        return;
    }
    throw new Exception("no error");
}

function old()
{
    return pg_connect(sprintf("host=127.0.0.1 port=%s dbname=%s user=%s password=none", getenv("PGPORT"), getenv("PGDATABASE"), getenv("PGUSER")), PGSQL_CONNECT_FORCE_NEW);
}

$checks["connects"] = function ($see) {
    $db = connect();
    $see($db->getAttribute(PDO::ATTR_DRIVER_NAME), (int) $db->getAttribute(PDO::ATTR_SERVER_VERSION), $db->query("select 1")->fetchColumn());
};
$checks["types"] = function ($see) {
    $row = connect()->query("select 5::int as i, 1099511627776::bigint as l, 1.50::numeric as n, true as b, 2.5::float8 as f, 'é' as t, null as z, date '2024-02-29' as d, '\\x00ff'::bytea as y, array[1,2] as a")->fetch(PDO::FETCH_ASSOC);
    $row["y"] = bin2hex(stream_get_contents($row["y"]));
    $see($row);
};
$checks["parameters of each type"] = function ($see) {
    $made = connect()->prepare("select :i::int + 1, :b::bool, :t::text, :z::int is null, length(:y::bytea)");
    $made->bindValue(":i", 4, PDO::PARAM_INT);
    $made->bindValue(":b", false, PDO::PARAM_BOOL);
    $made->bindValue(":t", "it's");
    $made->bindValue(":z", null, PDO::PARAM_NULL);
    $made->bindValue(":y", "\0\1\2", PDO::PARAM_LOB);
    $made->execute();
    $see($made->fetch(PDO::FETCH_NUM));
};
$checks["emulated preparation"] = function ($see) {
    $made = people([PDO::ATTR_EMULATE_PREPARES => true])->prepare("select name from people where id = ? or name = ?");
    $made->execute([1, "name 2"]);
    $see($made->fetchAll(PDO::FETCH_COLUMN));
};
$checks["prepared statement run again"] = function ($see) {
    $made = people()->prepare("select name from people where id = ?");
    foreach ([1, 2, 99] as $id) {
        $made->execute([$id]);
        $see($made->fetchColumn(), $made->rowCount());
    }
};
$checks["ways of fetching"] = function ($see) {
    $db = people();
    $see($db->query("select id, name from people where id < 3 order by id")->fetchAll(PDO::FETCH_KEY_PAIR), $db->query("select id, name from people where id = 1")->fetchObject());
    $see($db->query("select id % 2 as odd, name from people where id < 5 order by id")->fetchAll(PDO::FETCH_GROUP | PDO::FETCH_COLUMN));
};
$checks["column metadata"] = function ($see) {
    $made = people()->query("select id, name, height from people");
    for ($at = 0; $at < $made->columnCount(); $at++) {
        $meta = $made->getColumnMeta($at);
        $see($meta["name"], $meta["native_type"], $meta["table"], $meta["len"], $meta["precision"], $meta["pdo_type"]);
    }
};
$checks["last insert id"] = function ($see) {
    $db = people();
    $db->exec("insert into people (name) values ('new')");
    $see($db->lastInsertId(), $db->lastInsertId("people_id_seq"));
};
$checks["transactions"] = function ($see) {
    $db = people();
    $db->beginTransaction();
    $db->exec("delete from people");
    $see($db->inTransaction());
    $db->rollBack();
    $see($db->query("select count(*) from people")->fetchColumn());
};
$checks["savepoints"] = function ($see) {
    $db = people();
    $db->beginTransaction();
    $db->exec("savepoint s");
    refused($see, fn() => $db->exec("insert into people (name) values ('name 1')"));
    $db->exec("rollback to s");
    $db->commit();
    $see($db->query("select count(*) from people")->fetchColumn());
};
$checks["errors"] = function ($see) {
    $db = people();
    foreach (["insert into people (name) values ('name 1')", "select nothing from people", "select * from nowhere", "insert into people (name) values (null)", "selec"] as $text) {
        refused($see, fn() => $db->query($text));
    }
    refused($see, fn() => $db->prepare("select ?::int")->execute(["x"]));
};
$checks["cursor that scrolls"] = function ($see) {
    $db = people();
    $db->beginTransaction();
    $made = $db->prepare("select id from people order by id", [PDO::ATTR_CURSOR => PDO::CURSOR_SCROLL]);
    $made->execute();
    $see($made->fetch(PDO::FETCH_NUM, PDO::FETCH_ORI_ABS, 4), $made->fetch(PDO::FETCH_NUM, PDO::FETCH_ORI_PRIOR), $made->fetch(PDO::FETCH_NUM, PDO::FETCH_ORI_LAST));
};
$checks["copy"] = function ($see) {
    $db = people();
    $see($db->pgsqlCopyFromArray("people", ["50\tfifty\t1.5\t\\N", "51\tone\t\\N\t2024-02-29"]), array_slice($db->pgsqlCopyToArray("people", "|"), -2));
};
$checks["large objects"] = function ($see) {
    $db = connect();
    $db->beginTransaction();
    $oid = $db->pgsqlLOBCreate();
    $stream = $db->pgsqlLOBOpen($oid, "w");
    $see(fwrite($stream, "hello"));
    $db->rollBack();
};
$checks["notifications"] = function ($see) {
    $db = connect();
    $db->exec("listen news");
    $db->exec("notify news, 'hello'");
    $got = $db->pgsqlGetNotify(PDO::FETCH_ASSOC, 2000);
    $see($got["message"], $got["payload"]);
};
$checks["quoting and several statements"] = function ($see) {
    $db = connect();
    $see($db->quote("it's \\"), $db->query("select " . $db->quote("it's \\"))->fetchColumn(), $db->exec("create table a (n int); insert into a values (1), (2)"));
};
$checks["json"] = fn($see) => $see(connect()->query("select '{\"a\": [1]}'::jsonb -> 'a'")->fetchColumn());
$checks["pg_query_params and results"] = function ($see) {
    people();
    $db = old();
    $found = pg_query_params($db, 'select id, name, height from people where id < $1 order by id', [3]);
    $see(pg_fetch_all($found), pg_num_rows($found), pg_field_name($found, 2), pg_field_type($found, 2), pg_field_table($found, 0), pg_field_size($found, 0), pg_field_is_null($found, 0, "height"));
};
$checks["pg_insert, pg_update, pg_select and pg_delete"] = function ($see) {
    people();
    $db = old();
    $see((bool) pg_insert($db, "people", ["name" => "new", "height" => "1.5"]), pg_update($db, "people", ["height" => "2"], ["name" => "new"]), pg_select($db, "people", ["name" => "new"]), pg_delete($db, "people", ["name" => "new"]));
};
$checks["pg_meta_data"] = function ($see) {
    people();
    foreach (pg_meta_data(old(), "people") as $name => $one) {
        $see($name, $one["type"], $one["len"], $one["not null"], $one["has default"]);
    }
};
$checks["pg_prepare and pg_send_query"] = function ($see) {
    people();
    $db = old();
    pg_prepare($db, "by_id", 'select name from people where id = $1');
    $see(pg_fetch_result(pg_execute($db, "by_id", [3]), 0, 0), pg_transaction_status($db), pg_parameter_status($db, "server_encoding"));
    pg_send_query($db, "select 1 as one; select 2 as two");
    while ($found = pg_get_result($db)) {
        $see(pg_fetch_assoc($found));
    }
};
$checks["pg_copy_from and pg_copy_to"] = function ($see) {
    people();
    $db = old();
    $see(pg_copy_from($db, "people", ["50\tx\t1\t\\N\n"]), array_slice(pg_copy_to($db, "people"), -1));
};
$checks["pg_result_error_field"] = function ($see) {
    people();
    $db = old();
    pg_send_query($db, "insert into people (name) values ('name 1')");
    $found = pg_get_result($db);
    foreach ([PGSQL_DIAG_SQLSTATE, PGSQL_DIAG_MESSAGE_PRIMARY, PGSQL_DIAG_MESSAGE_DETAIL, PGSQL_DIAG_CONSTRAINT_NAME] as $field) {
        $see(pg_result_error_field($found, $field));
    }
};

function text($value): string
{
    return is_string($value) ? $value : json_encode($value, JSON_UNESCAPED_UNICODE | JSON_INVALID_UTF8_SUBSTITUTE | JSON_PRESERVE_ZERO_FRACTION);
}

echo "::", json_encode(array_keys($checks)), "\n";
while (($name = fgets(STDIN)) !== false) {
    $seen = [];
    $answer = [];
    $see = function (...$values) use (&$seen) {
        $seen[] = implode(" ", array_map("text", $values));
    };
    try {
        $checks[rtrim($name, "\n")]($see);
    } catch (Throwable $error) {
        $answer["error"] = strtok($error->getMessage(), "\n");
    }
    gc_collect_cycles();
    echo "\n::", json_encode(["seen" => $seen] + $answer, JSON_INVALID_UTF8_SUBSTITUTE), "\n";
}
