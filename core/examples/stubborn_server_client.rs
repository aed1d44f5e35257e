//! A client of a server whose tool does not stop. Starts the server, calls the tool, and ends once its input ends.
//!
//! Arguments: how it ends ("close", "exit" or "error"), the tool, the file that the tool writes, and the server's command.

#![allow(clippy::print_stdout, reason = "it says when the tool runs")]

use std::{fs, io, time::Duration};

use gudgeon::{
    Client,
    error::{Error, ErrorKind},
    transport::Command,
};
use serde_json::json;
use tokio::io::{AsyncReadExt, stdin};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, end, tool, at, program, rest @ ..] = arguments.as_slice() else {
        let usage = "give how to end, a tool, a file, and the command of a server";
        return Err(Error::new(ErrorKind::Misuse, usage));
    };
    let client = Client::connect(Command::new(program).args(rest)).await?;
    let (calling, tool, file) = (client.clone(), tool.clone(), at.clone());
    tokio::spawn(async move { calling.call_tool(&tool, json!({ "at": file })).await });
    while !fs::exists(at).unwrap_or_default() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    println!("ready");
    let read: io::Result<_> = stdin().read_to_end(&mut Vec::new()).await;
    if end == "close" {
        client.close().await;
    }
    match end.as_str() {
        "error" => Err(Error::new(ErrorKind::Misuse, format!("the program failed: {read:?}"))),
        _ => Ok(()),
    }
}
