// PostgreSQL's JDBC driver over TLS: it knows the server by its certificate, and logs in by password.

import java.sql.*;
import java.util.Properties;

public class Encrypted {
    static Connection connect(String host) throws SQLException {
        Properties properties = new Properties();
        properties.setProperty("user", System.getenv("PGUSER"));
        properties.setProperty("password", System.getenv("PGPASSWORD"));
        properties.setProperty("sslmode", "verify-full");
        properties.setProperty("sslrootcert", System.getenv("PGSSLROOTCERT"));
        return DriverManager.getConnection("jdbc:postgresql://" + host + ":" + System.getenv("PGPORT") + "/postgres", properties);
    }

    static void require(boolean holds, String what) {
        if (!holds) throw new AssertionError(what);
    }

    public static void main(String[] arguments) throws SQLException {
        try (Connection connection = connect(System.getenv("PGHOST")); Statement statement = connection.createStatement()) {
            ResultSet found = statement.executeQuery("select ssl from pg_stat_ssl where pid = pg_backend_pid()");
            require(found.next() && found.getBoolean(1), "the session is encrypted");
        }
        // An address that the certificate does not have.
        try (Connection connection = connect("127.0.0.2")) {
            require(false, "the name is looked at");
        } catch (SQLException refused) {
            require(refused.getMessage().contains("127.0.0.2"), refused.getMessage());
        }
        System.out.println("done");
    }
}
