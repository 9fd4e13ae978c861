//! Native capture: a signal handler that unwinds the thread it interrupts, and the thread that decides whom to interrupt.
#![allow(unsafe_code)]

mod bounds;
mod cache;
mod cadence;
mod capture;
mod cfi;
mod costs;
mod desk;
mod engine;
mod expression;
mod figures;
mod handler;
mod histogram;
mod modules;
mod pause;
mod placement;
mod queue;
mod registers;
mod request;
mod rhythm;
mod rounds;
mod rule;
mod sampler;
mod source;
mod stillness;
mod stub;
mod swaps;
mod table;
mod thread;
mod threads;
mod unwind;
#[cfg(test)]
mod unwind_tests;
mod unwinder;

pub use sampler::{Look, Sampler, SamplerOptions, StartError, StopReport, start, start_with_look};
pub use source::SampleSource;
pub use threads::ThreadSelection;
pub use unwinder::{Unwinder, current_modules_unwinder};
