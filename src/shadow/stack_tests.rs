use proptest::prelude::*;

use super::*;

fn frames(stack: &ShadowStack) -> (Vec<(u64, u32)>, u32) {
    let mut buffer = ReadBuffer::new();
    match stack.read(&mut buffer) {
        ShadowRead::Frames { count, hidden } => {
            let entries = buffer.entries(count).iter();
            (entries.map(|entry| (entry.anchor, entry.code.get())).collect(), hidden)
        }
        other => panic!("{other:?}"),
    }
}

fn opened() -> Box<ShadowStack> {
    let stack = Box::new(ShadowStack::new());
    stack.open();
    stack
}

#[test]
fn a_stack_that_nobody_claimed_ignores_events() {
    let stack = ShadowStack::new();
    stack.enter(1, CodeId::new(1), 1);
    stack.leave(1, 1);
    assert_eq!(stack.read(&mut ReadBuffer::new()), ShadowRead::NoStack);
    assert_eq!(stack.figures(), StackFigures::default());
}

#[test]
fn only_the_ordinary_case_is_short() {
    let stack = opened();
    assert!(
        !stack.try_enter(900, EntryCode::new(CodeId::new(1), 1)),
        "deeper than ever before"
    );
    stack.enter(900, CodeId::new(1), 1);
    assert!(!stack.try_leave(900, 2), "another code object");
    assert!(!stack.try_leave(800, 1), "another eval frame");
    assert!(stack.try_leave(900, 1));
    assert!(stack.try_enter(900, EntryCode::new(CodeId::new(1), 1)));
    assert!(
        !ShadowStack::new().try_enter(900, EntryCode::new(CodeId::new(1), 1)),
        "nobody's stack"
    );
}

#[test]
fn an_enter_drops_deeper_entries_as_stale() {
    let stack = opened();
    stack.enter(900, CodeId::new(1), 1);
    stack.enter(500, CodeId::new(2), 2);
    stack.enter(400, CodeId::new(3), 3);
    stack.enter(900, CodeId::new(4), 4);
    assert_eq!(frames(&stack), (vec![(900, 1), (900, 4)], 0));
    assert_eq!(stack.figures().stale_dropped, 2);
}

#[test]
fn a_leave_takes_stale_entries_above_its_own_with_it() {
    let stack = opened();
    stack.enter(900, CodeId::new(1), 1);
    stack.enter(900, CodeId::new(2), 2);
    stack.enter(500, CodeId::new(3), 3);
    stack.leave(900, 1);
    assert_eq!(frames(&stack), (vec![], 0));
    assert_eq!(stack.figures().stale_dropped, 2);
    assert_eq!(stack.figures().unmatched_leaves, 0);
}

#[test]
fn an_unknown_leave_is_counted_and_changes_nothing() {
    let stack = opened();
    stack.enter(900, CodeId::new(1), 1);
    stack.leave(900, 7);
    stack.leave(500, 1);
    assert_eq!(frames(&stack), (vec![(900, 1)], 0));
    assert_eq!(stack.figures().unmatched_leaves, 2);
}

#[test]
fn frames_beyond_the_cap_are_counted_and_heal() {
    let stack = opened();
    let cap = PYTHON_FRAMES as u32;
    (0..cap + 10).for_each(|n| stack.enter(900, CodeId::new(n), n));
    assert_eq!(frames(&stack).1, 10);
    assert_eq!(stack.figures().deepest, cap + 10);
    assert_eq!(stack.figures().truncations, 1);
    (cap..cap + 10).rev().for_each(|n| stack.leave(900, n));
    assert_eq!((frames(&stack).0.len() as u32, frames(&stack).1), (cap, 0));
    assert_eq!(stack.figures().stale_dropped, 0);

    (0..5).for_each(|n| stack.enter(100, CodeId::new(n), n));
    assert_eq!(frames(&stack).1, 5);
    stack.enter(950, CodeId::new(1), 1);
    assert_eq!(frames(&stack), (vec![(950, 1)], 0));
    assert_eq!(stack.figures().stale_dropped, u64::from(cap) + 5);
    assert_eq!(stack.figures().deepest, cap + 10);
}

#[test]
fn seeded_frames_have_no_anchor_and_are_left_by_tag() {
    let stack = opened();
    stack.seed([(CodeId::new(1), 1), (CodeId::new(2), 2)]);
    stack.enter(900, CodeId::new(3), 3);
    assert_eq!(frames(&stack), (vec![(0, 1), (0, 2), (900, 3)], 0));
    stack.leave(900, 3);
    stack.leave(900, 2);
    assert_eq!(frames(&stack), (vec![(0, 1)], 0));
    stack.seed([(CodeId::new(5), 5)]);
    assert_eq!(frames(&stack), (vec![(0, 1)], 0));
}

/// One step of a program, as a walk over its call tree.
#[derive(Clone, Debug)]
enum Step {
    /// Calls `code`, in a new eval frame when `nested`.
    Call { code: u32, nested: bool },
    /// Returns from the innermost frame.
    Return,
}

/// What happens to an event on its way.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Arrives,
    Lost,
    Doubled,
    AfterTheNext,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (1..20u32, any::<bool>()).prop_map(|(code, nested)| Step::Call { code, nested }),
        2 => Just(Step::Return),
    ]
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        12 => Just(Fate::Arrives),
        1 => Just(Fate::Lost),
        1 => Just(Fate::Doubled),
        1 => Just(Fate::AfterTheNext),
    ]
}

#[derive(Clone, Copy, Debug)]
struct Event {
    enter: bool,
    anchor: u64,
    code: u32,
}

fn send(stack: &ShadowStack, event: Event) {
    let Event { anchor, code, .. } = event;
    if event.enter {
        if !stack.try_enter(anchor, EntryCode::new(CodeId::new(code), code)) {
            stack.enter(anchor, CodeId::new(code), code);
        }
    } else if !stack.try_leave(anchor, code) {
        stack.leave(anchor, code);
    }
}

/// The program's true stack, and the event of a step.
#[derive(Default)]
struct Truth(Vec<(u64, u32)>);

impl Truth {
    fn apply(&mut self, step: &Step) -> Option<Event> {
        match *step {
            Step::Call { code, nested } => {
                let below = self.0.last().map_or(1 << 40, |top| top.0);
                let anchor = if nested { below - 512 } else { below };
                self.0.push((anchor, code));
                Some(Event {
                    enter: true,
                    anchor,
                    code,
                })
            }
            Step::Return => self.0.pop().map(|(anchor, code)| Event {
                enter: false,
                anchor,
                code,
            }),
        }
    }
}

/// The rules of the module's text over an unbounded vector, in their plainest form.
#[derive(Default)]
struct Model {
    stack: Vec<(u64, u32)>,
    stale: u64,
    unmatched: u64,
}

impl Model {
    fn send(&mut self, event: Event) {
        let kept = self.stack.iter().take_while(|entry| entry.0 >= event.anchor).count();
        self.stale += (self.stack.len() - kept) as u64;
        self.stack.truncate(kept);
        if event.enter {
            self.stack.push((event.anchor, event.code));
        } else if let Some(at) = self
            .stack
            .iter()
            .rposition(|entry| *entry == (event.anchor, event.code))
        {
            self.stale += (self.stack.len() - 1 - at) as u64;
            self.stack.truncate(at);
        } else {
            self.unmatched += 1;
        }
    }
}

proptest! {
    #[test]
    fn undisturbed_events_give_the_true_stack(steps in prop::collection::vec(step(), 0..1500)) {
        let (stack, mut truth) = (opened(), Truth::default());
        let mut deepest = 0;
        for step in &steps {
            if let Some(event) = truth.apply(step) {
                send(&stack, event);
            }
            deepest = deepest.max(truth.0.len());
            let seen = truth.0.len().min(PYTHON_FRAMES);
            prop_assert_eq!(frames(&stack), (truth.0[..seen].to_vec(), (truth.0.len() - seen) as u32));
        }
        prop_assert_eq!(stack.figures().deepest as usize, deepest);
        prop_assert_eq!(stack.figures().stale_dropped + stack.figures().unmatched_leaves, 0);
    }

    #[test]
    fn disturbed_events_follow_the_model_and_heal(
        steps in prop::collection::vec((step(), fate()), 0..240),
    ) {
        let (stack, mut truth, mut model) = (opened(), Truth::default(), Model::default());
        let mut held: Option<Event> = None;
        for (step, fate) in &steps {
            let Some(event) = truth.apply(step) else { continue };
            let mut arriving = match fate {
                Fate::Arrives => vec![event],
                Fate::Lost => vec![],
                Fate::Doubled => vec![event, event],
                Fate::AfterTheNext if held.is_none() => {
                    held = Some(event);
                    continue;
                }
                Fate::AfterTheNext => vec![event],
            };
            arriving.extend(held.take());
            for event in arriving {
                send(&stack, event);
                model.send(event);
                prop_assert_eq!(frames(&stack), (model.stack.clone(), 0));
                prop_assert!(model.stack.is_sorted_by(|outer, inner| outer.0 >= inner.0));
            }
        }
        prop_assert_eq!(stack.figures().stale_dropped, model.stale);
        prop_assert_eq!(stack.figures().unmatched_leaves, model.unmatched);

        // Whatever went wrong, an event of the outermost eval frame leaves nothing deeper behind.
        let outermost = Event { enter: true, anchor: 1 << 40, code: 99 };
        send(&stack, outermost);
        prop_assert!(frames(&stack).0.iter().all(|entry| entry.0 == 1 << 40));
    }

    #[test]
    fn any_events_at_all_keep_the_stack_ordered_and_bounded(
        events in prop::collection::vec((any::<bool>(), 1..6u64, 1..4u32), 0..1200),
    ) {
        let stack = opened();
        for (enter, anchor, code) in events {
            send(&stack, Event { enter, anchor, code });
            let (seen, _) = frames(&stack);
            prop_assert!(seen.is_sorted_by(|outer, inner| outer.0 >= inner.0));
        }
    }
}
