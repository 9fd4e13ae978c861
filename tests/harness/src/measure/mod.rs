//! Measures servers and the profilers that look at them, for `./dev bench`.

mod attached;
pub mod chains;
mod cpu;
mod folded;
mod footprint;
mod meter;
pub mod peers;
mod record;
mod spread;

pub use attached::Attached;
pub use cpu::CpuTime;
pub use folded::Folded;
pub use footprint::{Footprint, GIVE_BACK};
pub use meter::{Meter, Slice};
pub use record::{Record, machine};
pub use spread::{Spread, median_interval};
