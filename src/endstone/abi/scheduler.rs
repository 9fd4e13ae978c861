//! `endstone::Scheduler` and `endstone::Task`.

use std::ffi::c_void;

use super::function::CxxFunction;
use super::plugin::Plugin;
use super::shared_ptr::SharedPtr;
use super::slot::Pass;

vtable_slots! {
    /// Slots of `endstone::Scheduler`. The `...Async` ones are left out on purpose: they captured a loop variable by reference in 0.11.6.
    SchedulerSlots of "endstone::Scheduler" {
        RUN_TASK_TIMER = 4 "_ZN8endstone9Scheduler12runTaskTimerERNS_6PluginENSt3__18functionIFvvEEEmm" (Pass::Registers(8), Pass::Memory, Pass::Registers(8), Pass::Registers(8)) -> Pass::Memory;
        CANCEL_TASK = 8 "_ZN8endstone9Scheduler10cancelTaskEj" (Pass::Registers(4)) -> Pass::Nothing;
    }
}

vtable_slots! {
    /// Slots of `endstone::Task`.
    TaskSlots of "endstone::Task" {
        GET_TASK_ID = 2 "_ZNK8endstone4Task9getTaskIdEv" () -> Pass::Registers(4);
    }
}

host_object! {
    /// The server's scheduler.
    Scheduler, "endstone::Scheduler"
}

host_object! {
    /// A scheduled task.
    Task, "endstone::Task"
}

impl Task<'_> {
    /// Its number, never 0.
    pub fn id(self) -> u32 {
        // SAFETY: getTaskId takes nothing and returns a 32 bit number.
        unsafe { call!(self.as_ptr(), TaskSlots::GET_TASK_ID; u32) }
    }
}

impl Scheduler<'_> {
    /// Runs `function` on the server thread, first after `delay` ticks and then every `period` ticks; the task's number, or `None` when
    /// the host refused (it does for a plugin that is not enabled).
    pub fn run_task_timer(self, plugin: Plugin<'_>, mut function: CxxFunction, delay: u64, period: u64) -> Option<u32> {
        // SAFETY: runTaskTimer takes a reference to the plugin, a std::function by value (by pointer to ours, which it moves out of), and
        // two numbers; it returns a shared_ptr through the hidden pointer, which we own and give up at the end of this function.
        let task = unsafe {
            call_for_object!(
                self.as_ptr(), SchedulerSlots::RUN_TASK_TIMER,
                plugin.as_ptr() => *mut c_void, &raw mut function => *mut CxxFunction, delay => u64, period => u64;
                SharedPtr<Task<'static>>
            )
        };
        // SAFETY: null, or a task that our share keeps alive.
        unsafe { Task::borrow(task.as_ptr()) }.map(Task::id)
    }

    /// Stops one task. It may be destroyed later, by the scheduler's next heartbeat.
    pub fn cancel_task(self, id: u32) {
        // SAFETY: cancelTask takes the number.
        unsafe { call!(self.as_ptr(), SchedulerSlots::CANCEL_TASK, id => u32; ()) }
    }
}
