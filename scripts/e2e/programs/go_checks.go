// Drivers for Go: lib/pq under database/sql, and pgx with its pools, batches and COPY.

package main

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgconn"
	"github.com/jackc/pgx/v4"
	"github.com/lib/pq"
)

type see func(values ...interface{})

type check struct {
	name string
	run  func(see) error
}

var address = fmt.Sprintf("host=127.0.0.1 port=%s user=%s password=none dbname=%s sslmode=disable", os.Getenv("PGPORT"), os.Getenv("PGUSER"), os.Getenv("PGDATABASE"))

const table = `create table people (id int primary key, name text not null, height numeric(5,2), born date, tags text[])`
const rows = `insert into people select n, 'name ' || n, n / 4.0, date '2024-02-29', array['a', 't' || n] from generate_series(1, 10) n`

// SQLSTATE and message of a driver's error.
func state(err error) string {
	var ours *pq.Error
	var theirs *pgconn.PgError
	if errors.As(err, &ours) {
		return string(ours.Code) + " " + ours.Message
	}
	if errors.As(err, &theirs) {
		return theirs.Code + " " + theirs.Message
	}
	return strings.SplitN(err.Error(), "\n", 2)[0]
}

// A check over lib/pq, with a table of people.
func byPq(name string, run func(see, *sql.DB) error) check {
	return check{"pq " + name, func(see see) error {
		db, err := sql.Open("postgres", address)
		if err != nil {
			return err
		}
		defer db.Close()
		for _, statement := range []string{table, rows} {
			if _, err = db.Exec(statement); err != nil {
				return err
			}
		}
		return run(see, db)
	}}
}

// A check over pgx, with a table of people.
func byPgx(name string, run func(see, context.Context, *pgx.Conn) error) check {
	return check{"pgx " + name, func(see see) error {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		db, err := pgx.Connect(ctx, address)
		if err != nil {
			return err
		}
		defer db.Close(ctx)
		for _, statement := range []string{table, rows} {
			if _, err = db.Exec(ctx, statement); err != nil {
				return err
			}
		}
		return run(see, ctx, db)
	}}
}

func count(db interface {
	QueryRow(string, ...interface{}) *sql.Row
}) (found int, err error) {
	err = db.QueryRow("select count(*) from people").Scan(&found)
	return
}

var checks = []check{
	byPq("queries", func(see see, db *sql.DB) error {
		found, err := db.Query("select id, name, height, born, tags from people where id < $1 order by id", 3)
		if err != nil {
			return err
		}
		defer found.Close()
		kinds, _ := found.ColumnTypes()
		for _, kind := range kinds {
			precision, scale, known := kind.DecimalSize()
			see(kind.Name(), kind.DatabaseTypeName(), kind.ScanType(), precision, scale, known)
		}
		for found.Next() {
			var id int
			var name, height string
			var born time.Time
			var tags []string
			if err = found.Scan(&id, &name, &height, &born, pq.Array(&tags)); err != nil {
				return err
			}
			see(id, name, height, born.UTC(), tags)
		}
		return found.Err()
	}),
	byPq("values and nulls", func(see see, db *sql.DB) error {
		var a sql.NullInt64
		var b bool
		var c []byte
		var d float64
		var e time.Time
		err := db.QueryRow("select $1::int, $2::bool, $3::bytea, $4::float8, $5::timestamptz", nil, true, []byte{0, 255}, 2.5, time.Unix(0, 0)).Scan(&a, &b, &c, &d, &e)
		see(a, b, c, d, e.UTC())
		return err
	}),
	byPq("prepared statement", func(see see, db *sql.DB) error {
		made, err := db.Prepare("select name from people where id = $1")
		if err != nil {
			return err
		}
		defer made.Close()
		for id := 1; id < 4; id++ {
			var name string
			if err = made.QueryRow(id).Scan(&name); err != nil {
				return err
			}
			see(name)
		}
		return nil
	}),
	byPq("rows affected", func(see see, db *sql.DB) error {
		done, err := db.Exec("update people set height = 1 where id < 4")
		if err != nil {
			return err
		}
		affected, _ := done.RowsAffected()
		see(affected)
		return nil
	}),
	byPq("transactions", func(see see, db *sql.DB) error {
		begun, err := db.BeginTx(context.Background(), &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
		if err != nil {
			return err
		}
		if _, err = begun.Exec("delete from people"); err != nil {
			return err
		}
		begun.Rollback()
		found, err := count(db)
		see(found)
		begun, _ = db.BeginTx(context.Background(), &sql.TxOptions{ReadOnly: true})
		_, refused := begun.Exec("delete from people")
		see(state(refused))
		begun.Rollback()
		return err
	}),
	byPq("serializable", func(see see, db *sql.DB) error {
		begun, err := db.BeginTx(context.Background(), &sql.TxOptions{Isolation: sql.LevelSerializable})
		if err != nil {
			return err
		}
		defer begun.Rollback()
		found, err := count(begun)
		see(found)
		return err
	}),
	byPq("copy in", func(see see, db *sql.DB) error {
		begun, err := db.Begin()
		if err != nil {
			return err
		}
		made, err := begun.Prepare(pq.CopyIn("people", "id", "name", "height"))
		if err != nil {
			return err
		}
		for id := 50; id < 60; id++ {
			if _, err = made.Exec(id, fmt.Sprint("copied ", id), 1.5); err != nil {
				return err
			}
		}
		if _, err = made.Exec(); err != nil {
			return err
		}
		made.Close()
		if err = begun.Commit(); err != nil {
			return err
		}
		found, err := count(db)
		see(found)
		return err
	}),
	byPq("errors", func(see see, db *sql.DB) error {
		for _, text := range []string{"insert into people values (1, 'x')", "select nothing from people", "select * from nowhere", "insert into people (id) values (99)"} {
			_, err := db.Exec(text)
			var failed *pq.Error
			if !errors.As(err, &failed) {
				return fmt.Errorf("no error for %s", text)
			}
			see(failed.Code, failed.Code.Name(), failed.Severity, failed.Message, failed.Detail, failed.Position, failed.Table, failed.Column, failed.Constraint)
		}
		return nil
	}),
	byPq("listener", func(see see, db *sql.DB) error {
		listener := pq.NewListener(address, time.Second, time.Second, nil)
		defer func() { go listener.Close() }()
		listening := make(chan error, 1)
		go func() { listening <- listener.Listen("news") }()
		select {
		case err := <-listening:
			if err != nil {
				return err
			}
		case <-time.After(3 * time.Second):
			return errors.New("not listening")
		}
		if _, err := db.Exec("notify news, 'hello'"); err != nil {
			return err
		}
		select {
		case one := <-listener.Notify:
			see(one.Channel, one.Extra)
		case <-time.After(3 * time.Second):
			return errors.New("nothing heard")
		}
		return nil
	}),
	byPq("cancel by context", func(see see, db *sql.DB) error {
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		defer cancel()
		_, err := db.ExecContext(ctx, "select pg_sleep(10)")
		see(state(err))
		found, err := count(db)
		see(found)
		return err
	}),
	byPgx("values in binary", func(see see, ctx context.Context, db *pgx.Conn) error {
		found, err := db.Query(ctx, "select id, name, height::float8, born, tags, array[1,2], true, null::int, '\\x00ff'::bytea, timestamptz '2024-01-01 00:00Z', interval '1 day 01:00', '12345678-1234-5678-1234-567812345678'::uuid from people where id = $1", 2)
		if err != nil {
			return err
		}
		defer found.Close()
		for found.Next() {
			values, err := found.Values()
			if err != nil {
				return err
			}
			for at, value := range values {
				if when, is := value.(time.Time); is {
					value = when.UTC()
				}
				see(found.FieldDescriptions()[at].DataTypeOID, fmt.Sprintf("%v", value))
			}
		}
		return found.Err()
	}),
	byPgx("json", func(see see, ctx context.Context, db *pgx.Conn) error {
		var got map[string]interface{}
		err := db.QueryRow(ctx, "select $1::jsonb", map[string]interface{}{"a": []int{1, 2}}).Scan(&got)
		see(got)
		return err
	}),
	byPgx("numeric and inet", func(see see, ctx context.Context, db *pgx.Conn) error {
		var numeric, inet string
		err := db.QueryRow(ctx, "select $1::numeric::text, '10.0.0.1'::inet::text", "123.4500").Scan(&numeric, &inet)
		see(numeric, inet)
		return err
	}),
	byPgx("batch", func(see see, ctx context.Context, db *pgx.Conn) error {
		batch := &pgx.Batch{}
		batch.Queue("insert into people (id, name) values ($1, $2)", 50, "x")
		batch.Queue("select count(*) from people")
		sent := db.SendBatch(ctx, batch)
		done, err := sent.Exec()
		if err != nil {
			return err
		}
		var found int
		err = sent.QueryRow().Scan(&found)
		see(done.String(), found)
		sent.Close()
		return err
	}),
	byPgx("copy from", func(see see, ctx context.Context, db *pgx.Conn) error {
		made, err := db.CopyFrom(ctx, pgx.Identifier{"people"}, []string{"id", "name"}, pgx.CopyFromRows([][]interface{}{{60, "a"}, {61, "b"}}))
		see(made)
		return err
	}),
	byPgx("transactions", func(see see, ctx context.Context, db *pgx.Conn) error {
		err := db.BeginFunc(ctx, func(begun pgx.Tx) error {
			begun.Exec(ctx, "delete from people")
			return errors.New("roll back")
		})
		see(err)
		var found int
		err = db.QueryRow(ctx, "select count(*) from people").Scan(&found)
		see(found)
		return err
	}),
	byPgx("nested transactions", func(see see, ctx context.Context, db *pgx.Conn) error {
		return db.BeginFunc(ctx, func(outer pgx.Tx) error {
			inner, err := outer.Begin(ctx)
			if err != nil {
				return err
			}
			inner.Exec(ctx, "delete from people")
			if err = inner.Rollback(ctx); err != nil {
				return err
			}
			var found int
			err = outer.QueryRow(ctx, "select count(*) from people").Scan(&found)
			see(found)
			return err
		})
	}),
	byPgx("prepared statements and a changed table", func(see see, ctx context.Context, db *pgx.Conn) error {
		described, err := db.Prepare(ctx, "by_id", "select * from people where id = $1")
		if err != nil {
			return err
		}
		see(described.ParamOIDs, len(described.Fields))
		_, err = db.Exec(ctx, "alter table people drop column tags")
		if err != nil {
			return err
		}
		_, err = db.Exec(ctx, "by_id", 1)
		see(state(err))
		return nil
	}),
	byPgx("simple protocol", func(see see, ctx context.Context, db *pgx.Conn) error {
		var name string
		err := db.QueryRow(ctx, "select name from people where id = $1", pgx.QuerySimpleProtocol(true), 4).Scan(&name)
		see(name)
		return err
	}),
	byPgx("errors and notices", func(see see, ctx context.Context, db *pgx.Conn) error {
		_, err := db.Exec(ctx, "insert into people values ($1, 'x')", 1)
		see(state(err))
		_, err = db.Exec(ctx, "select $1::int / 0", 4)
		see(state(err))
		found, err := db.Exec(ctx, "drop table if exists nowhere")
		see(found.String())
		return err
	}),
}

func main() {
	names := []string{}
	byName := map[string]check{}
	for _, one := range checks {
		names = append(names, one.name)
		byName[one.name] = one
	}
	list, _ := json.Marshal(names)
	fmt.Printf("::%s\n", list)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		answer := map[string]interface{}{}
		seen := []string{}
		err := byName[lines.Text()].run(func(values ...interface{}) {
			seen = append(seen, strings.TrimSpace(fmt.Sprintln(values...)))
		})
		answer["seen"] = seen
		if err != nil {
			answer["error"] = state(err)
		}
		line, _ := json.Marshal(answer)
		fmt.Printf("\n::%s\n", line)
	}
}
