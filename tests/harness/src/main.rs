//! The work behind `./dev`.

mod commands;

use std::process::ExitCode;

fn main() -> ExitCode {
    match commands::run(std::env::args().skip(1)) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error}");
            error.exit_code()
        }
    }
}
