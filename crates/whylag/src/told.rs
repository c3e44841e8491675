//! What is told of the messages of a run: the slowest with what their threads did, and what slow
//! ones have that the others lack.

use model::{Message, MessageBreakdown, Run};
use report::messages::ToldMessages;
use store::Store;

use crate::failure::Failure;

/// Slow messages that are looked at, of the whole run.
const LOOKED_AT: usize = 400;

/// Reads the intervals of the messages of this run, and puts them in order.
pub fn messages(store: &impl Store, run: &Run) -> Result<ToldMessages, Failure> {
    let slow: Vec<&Message> = run.messages.slow.iter().take(LOOKED_AT).collect();
    let fast: Vec<&Message> = run.messages.fast.iter().collect();
    if slow.is_empty() {
        return Ok(ToldMessages::default());
    }
    let windows = explain::message_windows(slow.iter().chain(&fast).copied());
    let (outliers, stacks) = store.outliers_in(run.id, &windows)?;
    let beside = Run { outliers, stacks, ..run.clone() };
    let slow = explain::break_down(&beside, slow);
    let fast = explain::break_down(&beside, fast);
    let mut contrasts = Vec::new();
    for program in &run.messages.programs {
        for flow in &program.flows {
            let of = |all: &[MessageBreakdown]| -> Vec<MessageBreakdown> {
                let is_of = |one: &&MessageBreakdown| {
                    (one.message.program, one.message.flow) == (program.program, flow.flow)
                };
                all.iter().filter(is_of).cloned().collect()
            };
            contrasts.push((flow.name.clone(), explain::contrast(&of(&slow), &of(&fast))));
        }
    }
    Ok(ToldMessages { slowest: slow, contrasts })
}
