//! The part of an outlier that is not queried, as JSON; what is absent is left out.

use std::borrow::Cow;

use model::{
    Accounts, FirstCall, Holder, Interrupts, Outlier, Runner, SyscallCall, TimerLegs, Waker,
};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
pub(super) struct Detail<'a> {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub syscall: Option<SyscallCall>,
    pub breakdown: Cow<'a, Accounts>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault_ip: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waker: Option<Cow<'a, Waker>>,
    #[serde(default, skip_serializing_if = "<[Runner]>::is_empty")]
    pub ran_instead: Cow<'a, [Runner]>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<Cow<'a, Holder>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timer: Option<TimerLegs>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupts: Option<Cow<'a, Interrupts>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_call: Option<FirstCall>,
}

impl<'a> Detail<'a> {
    pub fn of(outlier: &'a Outlier) -> Detail<'a> {
        Detail {
            syscall: outlier.syscall,
            breakdown: Cow::Borrowed(&outlier.breakdown),
            fault_ip: outlier.fault_ip,
            waker: outlier.waker.as_ref().map(Cow::Borrowed),
            ran_instead: Cow::Borrowed(&outlier.ran_instead),
            holder: outlier.holder.as_ref().map(Cow::Borrowed),
            timer: outlier.timer,
            interrupts: outlier.interrupts.as_ref().map(Cow::Borrowed),
            first_call: outlier.first_call,
        }
    }
}
