//! A server in twenty lines: `cargo run --example serve -- DIR SOCKET_DIR`.

use clearway_engine::{Config, Engine};
use clearway_server::{Server, ServerOptions, StopSignal, stub};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(data), Some(sockets)) = (arguments.next(), arguments.next()) else {
        return Err("usage: serve DIR SOCKET_DIR".into());
    };
    let options = ServerOptions {
        socket_dir: Some(sockets.into()),
        ..ServerOptions::default()
    };
    let stop = StopSignal::new()?;
    if data == "stub" {
        return Ok(stub::run(options, &stop)?);
    }
    let engine = Engine::open(data, Config::default())?;
    Server::bind(engine, options)?.run(&stop)?;
    Ok(())
}
