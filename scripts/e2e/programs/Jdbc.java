// PostgreSQL's JDBC driver: types, metadata, batches, generated keys, cursors by fetch size, savepoints, COPY.

import java.io.*;
import java.math.BigDecimal;
import java.sql.*;
import java.time.*;
import java.util.*;
import org.postgresql.PGConnection;
import org.postgresql.copy.CopyManager;

public class Jdbc {
    // A check; `see` notes what the driver showed.
    interface Check { void run(See see) throws Exception; }

    static class See {
        final List<String> lines = new ArrayList<>();
        void see(Object... values) {
            StringJoiner line = new StringJoiner(" ");
            for (Object value : values) line.add(text(value));
            lines.add(line.toString());
        }
    }

    static final Map<String, Check> CHECKS = new LinkedHashMap<>();
    static final List<Connection> OPENED = new ArrayList<>();

    static String text(Object value) {
        if (value instanceof byte[] bytes) return HexFormat.of().formatHex(bytes);
        if (value instanceof Object[] values) return Arrays.deepToString(values);
        return String.valueOf(value);
    }

    static Connection connect(String... options) throws SQLException {
        Properties properties = new Properties();
        properties.setProperty("user", System.getenv("PGUSER"));
        properties.setProperty("password", "none");
        for (int at = 0; at < options.length; at += 2) properties.setProperty(options[at], options[at + 1]);
        Connection connection = DriverManager.getConnection("jdbc:postgresql://127.0.0.1:" + System.getenv("PGPORT") + "/" + System.getenv("PGDATABASE"), properties);
        OPENED.add(connection);
        return connection;
    }

    static Connection people(String... options) throws SQLException {
        Connection connection = connect(options);
        run(connection, "create table people (id int primary key, name varchar(40) not null default 'x', height numeric(5,2), born date)");
        run(connection, "insert into people select n, 'name ' || n, n / 4.0, date '2000-01-01' + n from generate_series(1, 20) n");
        return connection;
    }

    static void run(Connection connection, String sql) throws SQLException {
        try (Statement statement = connection.createStatement()) { statement.execute(sql); }
    }

    static void rows(See see, ResultSet found, String... columns) throws SQLException {
        while (found.next()) {
            List<Object> row = new ArrayList<>();
            if (columns.length == 0) for (int at = 1; at <= found.getMetaData().getColumnCount(); at++) row.add(found.getObject(at));
            for (String column : columns) row.add(found.getObject(column));
            StringJoiner line = new StringJoiner(", ");
            for (Object value : row) line.add(text(value));
            see.see(line);
        }
    }

    static void query(See see, Connection connection, String sql) throws SQLException {
        try (Statement statement = connection.createStatement()) { rows(see, statement.executeQuery(sql)); }
    }

    static void refused(See see, Check work) throws Exception {
        try {
            work.run(see);
        } catch (SQLException error) {
            see.see("refused", error.getSQLState(), error.getMessage().lines().findFirst().orElse(""));
            return;
        }
        throw new AssertionError("no error");
    }

    static void types() {
        CHECKS.put("types set and read", see -> {
            Connection connection = connect();
            Object[][] values = {{"int4", 5}, {"int8", 1L << 40}, {"numeric", new BigDecimal("1.50")}, {"text", "é'"}, {"bool", true}, {"bytea", new byte[] {0, -1}}, {"float8", 2.5}, {"float4", 1.5f},
                {"date", LocalDate.of(2024, 2, 29)}, {"time", LocalTime.of(1, 2, 3)}, {"timestamp", LocalDateTime.of(2024, 2, 29, 1, 2, 3, 4000)}, {"timestamptz", OffsetDateTime.of(2024, 2, 29, 1, 2, 3, 0, ZoneOffset.UTC)},
                {"uuid", UUID.fromString("12345678-1234-5678-1234-567812345678")}};
            for (int round = 0; round < 7; round++)
                for (Object[] value : values)
                    try (PreparedStatement statement = connection.prepareStatement("select ?::" + value[0])) {
                        statement.setObject(1, value[1]);
                        ResultSet found = statement.executeQuery();
                        found.next();
                        if (round % 6 == 0) see.see(value[0], found.getObject(1), found.getMetaData().getColumnTypeName(1), found.getMetaData().getColumnType(1));
                    }
        });
        CHECKS.put("binary after some executions", see -> {
            Connection connection = people("prepareThreshold", "2");
            try (PreparedStatement statement = connection.prepareStatement("select id, height, born, name from people where id = ?")) {
                for (int id = 1; id < 7; id++) { statement.setInt(1, id); rows(see, statement.executeQuery()); }
            }
        });
        CHECKS.put("arrays", see -> {
            Connection connection = connect();
            try (PreparedStatement statement = connection.prepareStatement("select ?::int[], ?::text[], array[[1,2],[3,null]]")) {
                statement.setArray(1, connection.createArrayOf("int4", new Object[] {1, null, 3}));
                statement.setArray(2, connection.createArrayOf("text", new Object[] {"a", "b\"c"}));
                ResultSet found = statement.executeQuery();
                found.next();
                for (int at = 1; at <= 3; at++) see.see(found.getArray(at).getArray(), found.getArray(at).getBaseTypeName());
            }
        });
        CHECKS.put("nulls and other ways of setting", see -> {
            try (PreparedStatement statement = connect().prepareStatement("select ?::int is null, ?::timestamp, ?::date, ?::text, ?::bytea")) {
                statement.setNull(1, Types.INTEGER);
                statement.setTimestamp(2, Timestamp.valueOf("2024-02-29 01:02:03.5"));
                statement.setDate(3, java.sql.Date.valueOf("2024-02-29"));
                statement.setString(4, "x");
                statement.setBinaryStream(5, new ByteArrayInputStream(new byte[] {1, 2}), 2);
                rows(see, statement.executeQuery());
            }
        });
        CHECKS.put("json and enum", see -> {
            Connection connection = connect();
            org.postgresql.util.PGobject value = new org.postgresql.util.PGobject();
            value.setType("jsonb");
            value.setValue("{\"a\": 1}");
            try (PreparedStatement statement = connection.prepareStatement("select ?, ?::jsonb -> 'a'")) { statement.setObject(1, value); statement.setString(2, "{\"a\": [1]}"); rows(see, statement.executeQuery()); }
        });
        CHECKS.put("intervals and money", see -> {
            try (Statement statement = connect().createStatement()) {
                ResultSet found = statement.executeQuery("select interval '1 year 2 days 03:04:05.5'");
                found.next();
                org.postgresql.util.PGInterval interval = (org.postgresql.util.PGInterval) found.getObject(1);
                see.see(interval.getYears(), interval.getDays(), interval.getHours(), interval.getSeconds());
            }
        });
        CHECKS.put("large objects", see -> {
            Connection connection = connect();
            connection.setAutoCommit(false);
            var manager = connection.unwrap(PGConnection.class).getLargeObjectAPI();
            long oid = manager.createLO();
            var object = manager.open(oid);
            object.write("hello".getBytes());
            object.seek(1);
            see.see(new String(object.read(3)));
            object.close();
            manager.delete(oid);
            connection.rollback();
        });
    }

    static void statements() {
        CHECKS.put("update counts and several results", see -> {
            Connection connection = people();
            try (Statement statement = connection.createStatement()) {
                see.see(statement.executeUpdate("update people set name = 'y' where id < 4"), statement.executeLargeUpdate("delete from people where id = 1"));
                see.see(statement.execute("select 1; update people set name = 'z' where id = 2; select 2"), statement.getMoreResults(), statement.getUpdateCount(), statement.getMoreResults());
            }
        });
        CHECKS.put("batch", see -> {
            Connection connection = people();
            try (PreparedStatement statement = connection.prepareStatement("insert into people (id, name) values (?, ?)")) {
                for (int id = 100; id < 400; id++) { statement.setInt(1, id); statement.setString(2, "b"); statement.addBatch(); }
                see.see(statement.executeBatch().length);
            }
            query(see, connection, "select count(*) from people");
        });
        CHECKS.put("batch rewritten as one insert", see -> {
            Connection connection = people("reWriteBatchedInserts", "true");
            try (PreparedStatement statement = connection.prepareStatement("insert into people (id, name) values (?, ?)")) {
                for (int id = 100; id < 400; id++) { statement.setInt(1, id); statement.setString(2, "b"); statement.addBatch(); }
                see.see(statement.executeBatch().length);
            }
            query(see, connection, "select count(*) from people");
        });
        CHECKS.put("batch with an error", see -> {
            Connection connection = people();
            try (Statement statement = connection.createStatement()) {
                statement.addBatch("insert into people values (50)");
                statement.addBatch("insert into people values (1)");
                statement.addBatch("insert into people values (51)");
                statement.executeBatch();
            } catch (BatchUpdateException error) {
                see.see(error.getSQLState(), Arrays.toString(error.getUpdateCounts()));
            }
            query(see, connection, "select count(*) from people");
        });
        CHECKS.put("generated keys", see -> {
            Connection connection = connect();
            run(connection, "create table t (id serial primary key, s text, n int default 7)");
            try (PreparedStatement statement = connection.prepareStatement("insert into t (s) values (?), (?)", Statement.RETURN_GENERATED_KEYS)) {
                statement.setString(1, "a");
                statement.setString(2, "b");
                statement.executeUpdate();
                rows(see, statement.getGeneratedKeys());
            }
            try (PreparedStatement statement = connection.prepareStatement("insert into t (s) values ('c')", new String[] {"id", "n"})) { statement.executeUpdate(); rows(see, statement.getGeneratedKeys()); }
        });
        CHECKS.put("cursor by fetch size", see -> {
            Connection connection = people();
            connection.setAutoCommit(false);
            try (PreparedStatement statement = connection.prepareStatement("select id from people order by id")) {
                statement.setFetchSize(6);
                int sum = 0;
                for (ResultSet found = statement.executeQuery(); found.next();) sum += found.getInt(1);
                see.see(sum);
                statement.setMaxRows(3);
                rows(see, statement.executeQuery());
            }
        });
        CHECKS.put("scrollable and updatable result", see -> {
            Connection connection = people();
            try (Statement statement = connection.createStatement(ResultSet.TYPE_SCROLL_INSENSITIVE, ResultSet.CONCUR_UPDATABLE)) {
                ResultSet found = statement.executeQuery("select id, name from people order by id");
                found.absolute(3);
                found.updateString("name", "changed");
                found.updateRow();
                found.last();
                see.see(found.getRow());
                found.moveToInsertRow();
                found.updateInt("id", 77);
                found.updateString("name", "inserted");
                found.insertRow();
            }
            query(see, connection, "select id, name from people where id in (3, 77) order by id");
        });
        CHECKS.put("holdable cursor", see -> {
            Connection connection = people();
            connection.setAutoCommit(false);
            run(connection, "declare held cursor with hold for select id from people order by id");
            connection.commit();
            query(see, connection, "fetch 3 from held");
            run(connection, "close held");
        });
        CHECKS.put("callable statement", see -> {
            Connection connection = connect();
            try (CallableStatement statement = connection.prepareCall("{? = call upper(?)}")) {
                statement.registerOutParameter(1, Types.VARCHAR);
                statement.setString(2, "loud");
                statement.execute();
                see.see(statement.getString(1));
            }
        });
        CHECKS.put("escapes of JDBC", see -> query(see, connect(), "select {fn concat('a', 'b')}, {d '2024-02-29'}, {ts '2024-02-29 01:02:03'}, {fn ucase('x')}"));
        CHECKS.put("query timeout and cancel", see -> {
            Connection connection = connect();
            try (Statement statement = connection.createStatement()) {
                statement.setQueryTimeout(1);
                refused(see, ignored -> statement.executeQuery("select pg_sleep(5)"));
            }
            query(see, connection, "select 1");
        });
        CHECKS.put("errors with their fields", see -> {
            Connection connection = people();
            for (String sql : new String[] {"insert into people values (1)", "insert into people values (99, null)", "select nothing from people", "select * from nowhere", "selec", "select 1 / 0"})
                try {
                    run(connection, sql);
                } catch (org.postgresql.util.PSQLException error) {
                    var server = error.getServerErrorMessage();
                    see.see(server.getSQLState(), server.getMessage(), server.getHint(), server.getPosition(), server.getTable(), server.getColumn(), server.getConstraint());
                }
        });
        CHECKS.put("warnings", see -> {
            try (Statement statement = connect().createStatement()) { statement.execute("drop table if exists nowhere"); see.see(statement.getWarnings().getMessage(), statement.getWarnings().getSQLState()); }
        });
        CHECKS.put("copy in and out", see -> {
            Connection connection = people();
            CopyManager copy = connection.unwrap(PGConnection.class).getCopyAPI();
            see.see(copy.copyIn("copy people from stdin with csv", new StringReader("50,a,1.5,2024-01-01\n51,b,,\n")));
            StringWriter out = new StringWriter();
            see.see(copy.copyOut("copy (select * from people where id >= 50 order by id) to stdout", out), out);
        });
        CHECKS.put("notifications", see -> {
            Connection connection = connect();
            run(connection, "listen news");
            run(connection, "notify news, 'hello'");
            for (var one : connection.unwrap(PGConnection.class).getNotifications(2000)) see.see(one.getName(), one.getParameter());
        });
    }

    static void transactions() {
        CHECKS.put("commit and rollback", see -> {
            Connection connection = people();
            connection.setAutoCommit(false);
            run(connection, "delete from people");
            connection.rollback();
            run(connection, "delete from people where id = 1");
            connection.commit();
            query(see, connection, "select count(*) from people");
        });
        CHECKS.put("savepoints", see -> {
            Connection connection = people();
            connection.setAutoCommit(false);
            Savepoint named = connection.setSavepoint("one");
            run(connection, "delete from people");
            connection.rollback(named);
            Savepoint other = connection.setSavepoint();
            run(connection, "delete from people where id = 1");
            connection.releaseSavepoint(other);
            connection.commit();
            query(see, connection, "select count(*) from people");
        });
        CHECKS.put("autosave", see -> {
            Connection connection = people("autosave", "always");
            connection.setAutoCommit(false);
            run(connection, "delete from people where id = 1");
            refused(see, ignored -> run(connection, "select 1 / 0"));
            connection.commit();
            query(see, connection, "select count(*) from people");
        });
        CHECKS.put("isolation and read only", see -> {
            Connection connection = people();
            connection.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
            connection.setReadOnly(true);
            connection.setAutoCommit(false);
            see.see(connection.getTransactionIsolation(), connection.isReadOnly());
            refused(see, ignored -> run(connection, "delete from people"));
        });
        CHECKS.put("serializable", see -> {
            Connection connection = connect();
            connection.setTransactionIsolation(Connection.TRANSACTION_SERIALIZABLE);
            see.see(connection.getTransactionIsolation());
        });
        CHECKS.put("two-phase commit", see -> {
            Connection connection = people();
            connection.setAutoCommit(false);
            run(connection, "delete from people");
            run(connection, "prepare transaction 'one'");
            connection.setAutoCommit(true);
            run(connection, "rollback prepared 'one'");
            query(see, connection, "select count(*) from people");
        });
        CHECKS.put("schema and client information", see -> {
            Connection connection = connect("ApplicationName", "mine", "currentSchema", "public");
            see.see(connection.getSchema(), connection.getCatalog(), connection.getClientInfo("ApplicationName"), connection.isValid(2));
            connection.setSchema("pg_catalog");
            see.see(connection.getSchema());
        });
    }

    static void metadata() {
        CHECKS.put("metadata of the server", see -> {
            DatabaseMetaData meta = connect().getMetaData();
            see.see(meta.getDatabaseProductName(), meta.getDatabaseMajorVersion(), meta.getIdentifierQuoteString(), meta.getMaxColumnNameLength(), meta.supportsSavepoints(), meta.getDefaultTransactionIsolation());
        });
        CHECKS.put("tables", see -> {
            Connection connection = people();
            run(connection, "create view tall as select * from people");
            rows(see, connection.getMetaData().getTables(null, "public", "%", new String[] {"TABLE", "VIEW"}), "TABLE_SCHEM", "TABLE_NAME", "TABLE_TYPE", "REMARKS");
        });
        CHECKS.put("columns", see -> rows(see, people().getMetaData().getColumns(null, "public", "people", "%"), "COLUMN_NAME", "DATA_TYPE", "TYPE_NAME", "COLUMN_SIZE", "DECIMAL_DIGITS", "NULLABLE", "COLUMN_DEF", "IS_AUTOINCREMENT"));
        CHECKS.put("primary keys", see -> rows(see, people().getMetaData().getPrimaryKeys(null, "public", "people"), "COLUMN_NAME", "KEY_SEQ", "PK_NAME"));
        CHECKS.put("indexes", see -> {
            Connection connection = people();
            run(connection, "create index people_name on people (name, height)");
            rows(see, connection.getMetaData().getIndexInfo(null, "public", "people", false, true), "INDEX_NAME", "NON_UNIQUE", "COLUMN_NAME", "ORDINAL_POSITION", "ASC_OR_DESC", "TYPE");
        });
        CHECKS.put("imported and exported keys", see -> {
            Connection connection = people();
            run(connection, "create table c (p int references people on delete cascade)");
            rows(see, connection.getMetaData().getImportedKeys(null, "public", "c"), "PKTABLE_NAME", "PKCOLUMN_NAME", "FKCOLUMN_NAME", "DELETE_RULE");
            rows(see, connection.getMetaData().getExportedKeys(null, "public", "people"), "FKTABLE_NAME");
        });
        CHECKS.put("schemas and catalogs", see -> {
            DatabaseMetaData meta = connect().getMetaData();
            List<String> names = new ArrayList<>();
            for (ResultSet found = meta.getSchemas(); found.next();) if (!found.getString(1).startsWith("pg_t")) names.add(found.getString(1));
            see.see(names);
            rows(see, meta.getTableTypes());
        });
        CHECKS.put("functions", see -> rows(see, connect().getMetaData().getFunctions(null, "pg_catalog", "upper"), "FUNCTION_NAME", "FUNCTION_TYPE"));
        CHECKS.put("types of the server", see -> {
            for (ResultSet found = connect().getMetaData().getTypeInfo(); found.next();)
                if (Set.of("int4", "text", "numeric", "bool", "timestamptz").contains(found.getString("TYPE_NAME"))) see.see(found.getString("TYPE_NAME"), found.getInt("DATA_TYPE"), found.getInt("PRECISION"));
        });
        CHECKS.put("best row identifier and privileges", see -> {
            DatabaseMetaData meta = people().getMetaData();
            rows(see, meta.getBestRowIdentifier(null, "public", "people", DatabaseMetaData.bestRowSession, false), "COLUMN_NAME", "TYPE_NAME");
            rows(see, meta.getTablePrivileges(null, "public", "people"), "GRANTEE", "PRIVILEGE");
        });
        CHECKS.put("metadata of a result and of parameters", see -> {
            try (PreparedStatement statement = people().prepareStatement("select id, name as n, height from people where id = ? and name = ?")) {
                ResultSetMetaData meta = statement.getMetaData();
                for (int at = 1; at <= meta.getColumnCount(); at++)
                    see.see(meta.getColumnLabel(at), meta.getColumnName(at), meta.getTableName(at), meta.getColumnTypeName(at), meta.getPrecision(at), meta.getScale(at), meta.isNullable(at), meta.isAutoIncrement(at));
                see.see(statement.getParameterMetaData().getParameterTypeName(1), statement.getParameterMetaData().getParameterTypeName(2));
            }
        });
    }

    static String json(String value) {
        StringBuilder made = new StringBuilder("\"");
        for (char one : value.toCharArray())
            if (one < ' ' || one == '"' || one == '\\' || one > '~') made.append(String.format("\\u%04x", (int) one));
            else made.append(one);
        return made.append('"').toString();
    }

    static String json(Collection<String> values) {
        StringJoiner made = new StringJoiner(",", "[", "]");
        for (String value : values) made.add(json(value));
        return made.toString();
    }

    public static void main(String[] arguments) throws Exception {
        TimeZone.setDefault(TimeZone.getTimeZone("UTC"));
        types();
        statements();
        transactions();
        metadata();
        System.out.println("::" + json(CHECKS.keySet()));
        BufferedReader names = new BufferedReader(new InputStreamReader(System.in));
        for (String name; (name = names.readLine()) != null;) {
            See see = new See();
            String error = "";
            try {
                CHECKS.get(name).run(see);
            } catch (Throwable failed) {
                String state = failed instanceof SQLException sql ? sql.getSQLState() + " " : "";
                error = ",\"error\":" + json(state + String.valueOf(failed.getMessage()).lines().findFirst().orElse("") );
            }
            for (Connection connection : OPENED) try { connection.close(); } catch (SQLException ignored) { }
            OPENED.clear();
            System.out.println("\n::{\"seen\":" + json(see.lines) + error + "}");
        }
    }
}
