//! What the stand-in itself prints: whole lines on standard output, all starting with `[stand-in]`.

use std::io::Write;

/// Prints one line. A closed output must not stop the server, so errors are ignored.
pub fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // One write per line, so that Endstone's own log lines cannot get into the middle.
    let _ = out.write_all(format!("[stand-in] {line}\n").as_bytes());
    let _ = out.flush();
}
