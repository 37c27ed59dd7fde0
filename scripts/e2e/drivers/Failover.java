// PostgreSQL's JDBC driver with the hosts of a cluster: it finds the primary, and after a switchover the next one.

import java.sql.*;

public class Failover {
    static Connection connect(String hosts, String kind) throws SQLException {
        return DriverManager.getConnection("jdbc:postgresql://" + hosts + "/postgres?user=clearway&connectTimeout=2"
                + "&hostRecheckSeconds=0&targetServerType=" + kind);
    }

    static String ask(Connection connection, String sql) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            ResultSet found = statement.executeQuery(sql);
            found.next();
            return found.getString(1);
        }
    }

    public static void main(String[] arguments) throws Exception {
        String hosts = arguments[0];
        try (Connection first = connect(hosts, "primary"); Connection standby = connect(hosts, "secondary")) {
            System.out.println(ask(first, "insert into written values ('jdbc', 1) returning number"));
            System.out.println(ask(standby, "select pg_is_in_recovery()"));
            // The switchover is done once there is a line.
            System.in.read();
            try {
                ask(first, "insert into written values ('jdbc', -1) returning number");
                System.out.println("the old primary has answered");
            } catch (SQLException gone) {
                System.out.println("gone");
            }
        }
        try (Connection next = connect(hosts, "primary")) {
            System.out.println(ask(next, "insert into written values ('jdbc', 2) returning number"));
        }
    }
}
