//! The aggregator's end: captured stacks as samples.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::queue::{PythonKind, Queued, Shown, Stack};
use super::sampler::Shared;
use super::swaps::Swaps;
use crate::model::{Module, ModuleId, NativeFrame, PythonPart, Sample, ThreadKey};
use crate::shadow::ShadowTable;

/// Hands out samples in the order in which they were taken, thread by thread.
#[derive(Debug)]
pub struct SampleSource {
    shared: Arc<Shared>,
    table: &'static ShadowTable,
    batch: VecDeque<Queued>,
    last: HashMap<ThreadKey, (Stack, Vec<NativeFrame>)>,
    starts: HashMap<ModuleId, u64>,
    swaps: Swaps,
    ended: Vec<(ThreadKey, String)>,
}

impl SampleSource {
    pub(super) fn new(shared: Arc<Shared>, table: &'static ShadowTable) -> Self {
        SampleSource {
            shared,
            table,
            batch: VecDeque::new(),
            last: HashMap::new(),
            starts: HashMap::new(),
            swaps: Swaps::default(),
            ended: Vec::new(),
        }
    }

    /// Shows all samples that are there after at most `wait`; earlier when many are waiting. `false` when the sampler has stopped and these were the
    /// last.
    pub fn drain(&mut self, wait: Duration, visit: &mut dyn FnMut(&Sample<'_>)) -> bool {
        let mut batch = std::mem::take(&mut self.batch);
        let more = self.shared.queue.take(wait, &mut batch);
        for queued in batch.drain(..) {
            self.show(queued, visit);
        }
        self.batch = batch;
        more
    }

    fn show(&mut self, queued: Queued, visit: &mut dyn FnMut(&Sample<'_>)) {
        if matches!(queued.shown, Shown::End) {
            if let Some((stack, _)) = self.last.remove(&queued.thread) {
                self.shared.queue.give_back(stack);
            }
            let name = self.shared.names.lock().remove(&queued.thread);
            self.ended.push((queued.thread, name.unwrap_or_default()));
            return;
        }
        let repeated = matches!(queued.shown, Shown::Repeated);
        if let Shown::Stack(mut stack) = queued.shown {
            let mut native = self.last.remove(&queued.thread).map_or_else(Vec::new, |(old, native)| {
                self.shared.queue.give_back(old);
                native
            });
            native.clear();
            native.extend(stack.frames.iter().map(|frame| NativeFrame {
                module: frame.module,
                rva: frame.address.wrapping_sub(self.start_of(frame.module)),
                cfa: frame.cfa,
            }));
            if !self.swaps.allow(&stack, self.table.is_watched()) {
                stack.python = PythonKind::None;
            }
            self.last.insert(queued.thread, (stack, native));
        }
        // A repetition always follows a stack of the same thread.
        let Some((stack, native)) = self.last.get(&queued.thread) else {
            return;
        };
        visit(&Sample {
            thread: queued.thread,
            taken_at: queued.taken_at,
            weight_nanos: queued.weight_nanos,
            held_nanos: queued.held_nanos,
            native,
            omitted: stack.omitted,
            end: stack.end,
            python: match stack.python {
                PythonKind::None => PythonPart::None,
                PythonKind::Torn => PythonPart::Torn,
                PythonKind::Frames { hidden } => PythonPart::Frames {
                    entries: &stack.entries,
                    hidden,
                },
            },
            repeated,
        });
    }

    /// Where the module begins in memory, 0 for none.
    fn start_of(&mut self, id: ModuleId) -> u64 {
        if id == ModuleId::NONE {
            return 0;
        }
        if let Some(start) = self.starts.get(&id) {
            return *start;
        }
        let modules = self.shared.modules.lock();
        for module in modules.iter() {
            self.starts.insert(module.id, module.avma.start);
            self.swaps.note(module);
        }
        self.starts.get(&id).copied().unwrap_or(0)
    }

    /// All modules met in this session, unloaded ones too.
    pub fn modules(&self) -> Vec<Arc<Module>> {
        self.shared.modules.lock().clone()
    }

    /// The threads that have ended since the last call, with their last names: no sample of these will be shown any more, and their names are forgotten.
    pub fn take_ended(&mut self) -> Vec<(ThreadKey, String)> {
        std::mem::take(&mut self.ended)
    }

    /// The last known name of a thread of this session that has not ended, empty for others.
    pub fn thread_name(&self, thread: ThreadKey) -> String {
        self.shared.names.lock().get(&thread).cloned().unwrap_or_default()
    }
}
