//! The files of a server: `clearway config`, ALTER SYSTEM, data directory and addresses in the file.

#[allow(dead_code, reason = "each suite uses a part of it")]
#[path = "support/served.rs"]
mod served;

use std::fs;
use std::process::Command;

use served::Served;

const CONFIG: &str = "shared_buffers = \"2MB\"\nwork_mem = \"5MB\"\n";

/// The exit code of `clearway config`, and what it said.
fn config(words: &[&str]) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_clearway"));
    let output = command.arg("config").args(words).output().unwrap();
    let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    (output.status.code().unwrap(), said)
}

#[test]
fn the_command_says_what_a_server_would_make_of_its_files() {
    let directory = tempfile::tempdir().unwrap();
    let (file, data) = (
        directory.path().join("clearway.toml"),
        directory.path().join("data"),
    );
    fs::create_dir(&data).unwrap();
    fs::write(&file, CONFIG).unwrap();
    let auto = data.join("clearway.auto.toml");
    fs::write(&auto, "max_connections = 7\n").unwrap();
    let (file, data) = (file.to_str().unwrap(), data.to_str().unwrap());

    let (code, said) = config(&["check", "--config", file, "--data", data]);
    assert_eq!(code, 0, "{said}");
    assert!(said.starts_with("sound: 3 keys in "), "{said}");
    let (_, said) = config(&[
        "show",
        "--config",
        file,
        "--data",
        data,
        "work_mem",
        "max_connections",
        "fsync",
    ]);
    let expected = format!(
        "fsync = on    # default\nmax_connections = 7    # {}:1\nwork_mem = 5MB    # {file}:2\n",
        auto.display()
    );
    assert_eq!(said, expected);
    let (_, said) = config(&["diff", "--config", file, "--set", "lwlock=queued"]);
    let expected = format!(
        "mechanisms.lwlock: single-cas -> queued    # command line; a change needs a restart\n\
         shared_buffers: 128MB -> 2MB    # {file}:1; a change needs a restart\n\
         work_mem: 4MB -> 5MB    # {file}:2; a change needs a reload\n"
    );
    assert_eq!(said, expected);

    let (code, said) = config(&["show", "--config", file, "wrk_mem"]);
    assert!(code != 0 && said.contains("did you mean work_mem?"), "{said}");
    fs::write(file, "wrk_mem = \"5MB\"\n").unwrap();
    let (code, said) = config(&["check", "--config", file]);
    assert!(code != 0 && said.contains("did you mean work_mem?"), "{said}");
    assert!(
        !said.contains("checkpoint_timeout"),
        "it lists no other keys: {said}"
    );
    fs::write(file, CONFIG).unwrap();
    fs::write(format!("{data}/pg_hba.conf"), "nowhere all all trust\n").unwrap();
    let (code, said) = config(&["check", "--config", file, "--data", data]);
    assert!(code != 0 && said.contains("pg_hba.conf"), "{said}");
}

/// The check finds what the start would.
#[test]
fn the_check_finds_addresses_files_and_connections_with_which_a_server_does_not_start() {
    let directory = tempfile::tempdir().unwrap();
    let (file, data) = (
        directory.path().join("clearway.toml"),
        directory.path().join("data"),
    );
    fs::create_dir(&data).unwrap();
    let checked = |text: &str| {
        fs::write(&file, text).unwrap();
        let (file, data) = (file.to_str().unwrap(), data.to_str().unwrap());
        config(&["check", "--config", file, "--data", data])
    };
    for (text, told) in [
        ("listen = \"0.0.0.0:5433\"", "0.0.0.0:5433"),
        ("listen = \"none\"", "nothing to listen on"),
        ("socket_dir = \"/nowhere/at/all\"", "/nowhere/at/all"),
        ("ssl = \"on\"", "server.key"),
        ("primary_conninfo = \"nonsense\"", "nonsense"),
    ] {
        let (code, said) = checked(text);
        assert!(code != 0 && said.contains(told), "{text}: {said}");
    }
    for text in [
        "listen = \"127.0.0.1:5433\"",
        "listen = \"none\"\nsocket_dir = \"/tmp\"",
        "primary_conninfo = \"host=127.0.0.1 port=5433 user=alice\"",
    ] {
        let (code, said) = checked(text);
        assert!(code == 0 && said.starts_with("sound: "), "{text}: {said}");
    }
}

#[test]
fn what_alter_system_writes_holds_after_a_reload_and_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let mut server = Served::in_directory(directory.path());
    let mut client = server.start("", CONFIG);
    client.query("alter system set work_mem = '6MB'").unwrap();
    client.query("alter system set max_connections = 9").unwrap();
    // With that the server would not start.
    let refused = client.query("alter system set listen = '127.0.0.1'").unwrap_err();
    assert_eq!(refused.0, "22023");
    assert!(refused.1.contains("\"listen\": \"127.0.0.1\""), "{refused:?}");
    assert_eq!(client.value("show work_mem"), "5MB");
    assert_eq!(client.value("select pg_reload_conf()"), "t");
    assert_eq!(client.value("show work_mem"), "6MB");
    assert_eq!(client.value("show max_connections"), "500");
    let told = "select string_agg(name || ' ' || setting || ' ' || applied || coalesce(' ' || error, ''), ', ' order by seqno) \
                from pg_file_settings";
    assert_eq!(
        client.value(told),
        "shared_buffers 2MB true, work_mem 5MB false, max_connections 9 false setting could not be applied, \
         work_mem 6MB true"
    );
    let waiting = "select string_agg(name, ', ') from pg_settings where pending_restart";
    assert_eq!(client.value(waiting), "max_connections");
    server.signal("TERM");
    assert!(server.ended().success());
    let mut client = server.start("", CONFIG);
    assert_eq!(client.value("show max_connections"), "9");
    // The file of ALTER SYSTEM with a line that was written by hand is refused as a whole, and the error names the line.
    fs::write(
        server.data().join("clearway.auto.toml"),
        "work_mem = \"7MB\"\nwrk_mem = \"8MB\"\n",
    )
    .unwrap();
    assert_eq!(client.value("select pg_reload_conf()"), "f");
    server.said("there is no key \"wrk_mem\" (did you mean work_mem?)");
    assert_eq!(client.value("show work_mem"), "6MB");
    let faults = "select name || ': ' || error from pg_file_settings where error is not null";
    assert_eq!(
        client.value(faults),
        "wrk_mem: there is no key \"wrk_mem\" (did you mean work_mem?)"
    );
}
