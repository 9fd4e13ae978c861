//! What the pages say, compared with the code: commands, flags, settings, figures, messages, dependencies, links. Each in both directions, where there are two.

mod commands;
mod examples;
mod figures;
mod licences;
mod links;
mod messages;
mod page;
mod proofs;
mod settings;
