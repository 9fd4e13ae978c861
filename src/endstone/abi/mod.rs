//! Endstone 0.11's C++ classes as Rust sees them (linux x86_64, Itanium C++ ABI, libc++ ABI v1).
//!
//! Problem: a native Endstone plugin is a C++ object, and the server hands C++ objects to it. Why not C++: one language, no second
//! unwinder, no compiler needed. How: every class that is used has its slots ([`VtableSlots`]) and, where it is touched by value, its
//! layout ([`ClassLayout`]) written down once; the compiler checks the layouts, and `tests/abi/main.rs` compares both with the debug
//! information of Endstone's released wheel. Price: a new Endstone API version needs that test run again.
//!
//! # Rules that hold everywhere below
//!
//! - Calls into the host go through `extern "C-unwind"`: the host may throw. Such an exception passes through Rust frames, runs their
//!   drops and is caught and logged by Endstone. `catch_unwind` around a call that may throw aborts the process, so it is only ever put
//!   around pure Rust.
//! - Memory that changes hands is allocated with exactly the size that the owner will name when it frees it ([`allocate`]).
//! - A by-value argument of a class with a destructor is passed as a pointer to an object that the caller owns: the callee may move out
//!   of it, the caller destroys it afterwards. Here that is an ordinary Rust value passed by `&mut` and dropped by its scope.
//! - Such a result is written through a hidden first pointer; the receiver owns it.
//! - Wrappers ([`Server`], [`Logger`], ...) are borrowed references to host objects: they own nothing, cannot be sent to another thread,
//!   and must not outlive the call into the plugin that produced them.

#[macro_use]
mod slot;
mod actor;
mod alloc;
mod chunk;
mod command;
mod console;
mod description;
mod dimension;
mod function;
mod hash_map;
mod level;
mod logger;
mod message;
mod permission;
mod player;
mod plugin;
mod plugin_manager;
mod rtti;
mod scheduler;
mod sender;
mod server;
mod shared_ptr;
mod string;
mod vector;

pub use actor::{Actor, ActorSlots, Location};
pub use alloc::{allocate, release};
pub use chunk::{ChunkSlots, OwnedChunk};
pub use command::{Command, CommandSlots, CommandVtable, PluginCommand, PluginCommandSlots};
pub use console::ConsoleCommandSender;
pub use description::{LoadOrder, PluginDescription};
pub use dimension::{Dimension, DimensionSlots};
pub use function::{CxxFunction, FunctionBaseSlots};
pub use hash_map::CxxHashMap;
pub use level::{ActorList, Level, LevelSlots};
pub use logger::{LogLevel, Logger, LoggerSlots};
pub use message::{Message, MessageKind, Translatable};
pub use permission::{Permission, PermissionDefault};
pub use player::{OfflinePlayerSlots, Player, PlayerSlots, UniqueId};
pub use plugin::{CommandExecutorSlots, Plugin, PluginBase, PluginSlots, PluginVtable};
pub use plugin_manager::{PluginManager, PluginManagerSlots};
pub use rtti::{RttiUnavailable, TypeInfo};
pub use scheduler::{Scheduler, SchedulerSlots, Task, TaskSlots};
pub use sender::{CommandSender, CommandSenderSlots, PermissibleSlots};
pub use server::{Server, ServerSlots};
pub use shared_ptr::{ControlBlockSlots, SharedPtr};
pub use slot::{ClassLayout, EnumValues, Foreign, Member, Pass, Slot, VtableSlots};
pub use string::CxxString;
pub use vector::CxxVector;

/// All slot tables, for the test that compares them with a released Endstone.
pub const VTABLES: &[VtableSlots] = &[
    ActorSlots::TABLE,
    ChunkSlots::TABLE,
    CommandExecutorSlots::TABLE,
    CommandSenderSlots::TABLE,
    CommandSlots::TABLE,
    DimensionSlots::TABLE,
    FunctionBaseSlots::TABLE,
    LevelSlots::TABLE,
    LoggerSlots::TABLE,
    OfflinePlayerSlots::TABLE,
    PermissibleSlots::TABLE,
    PlayerSlots::TABLE,
    PluginCommandSlots::TABLE,
    PluginManagerSlots::TABLE,
    PluginSlots::TABLE,
    SchedulerSlots::TABLE,
    ServerSlots::TABLE,
    TaskSlots::TABLE,
];

/// All layouts, for the same test.
pub const LAYOUTS: &[ClassLayout] = &[
    Command::LAYOUT,
    CxxFunction::LAYOUT,
    CxxHashMap::LAYOUT,
    CxxString::LAYOUT,
    <CxxVector<CxxString>>::LAYOUT,
    <CxxVector<OwnedChunk>>::LAYOUT,
    Location::LAYOUT,
    Message::LAYOUT,
    OwnedChunk::LAYOUT,
    Permission::LAYOUT,
    PluginBase::LAYOUT,
    PluginCommand::LAYOUT,
    PluginDescription::LAYOUT,
    <SharedPtr<Task<'static>>>::LAYOUT,
    Translatable::LAYOUT,
    UniqueId::LAYOUT,
];

/// All enumerations, for the same test.
pub const ENUMS: &[EnumValues] = &[LoadOrder::VALUES, LogLevel::VALUES, PermissionDefault::VALUES];
