//! The server's statistics: its ticks, its machine, its players, over the last fifteen minutes.
//!
//! ```text
//! server thread, every tick     -> TickLog        two stores into a ring, no lock
//! server thread, every 10 s     -> Players
//! thread "spark-stats", 1 / s   -> SystemHistory  what /proc says
//!                                  all three      -> snapshot(), window(): by whoever asks
//! ```
//!
//! Everything is of fixed size from the start, except for the network interfaces and the names of players, which have limits.

mod distribution;
mod growth;
mod monitor;
mod players;
mod reading;
mod service;
#[cfg(test)]
mod service_tests;
mod source;
mod system;
mod ticks;
mod watcher;

pub use monitor::TickMonitor;
pub use service::Service;
