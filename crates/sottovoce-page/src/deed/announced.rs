//! What was shown to the owner and is done once they agree: exactly that, or nothing.

use std::collections::BTreeMap;
use std::sync::Mutex;

use sottovoce::Scope;
use sottovoce::store::{ForgetPlan, LimitsEffect, Retention};
use sottovoce_net::lock;

/// The most plans that wait. One more drops the oldest.
const WAITING: usize = 32;

/// Something that was announced.
#[derive(Debug, Clone)]
pub(crate) enum Plan {
    Forget(ForgetPlan),
    Limits(Option<Retention>, LimitsEffect),
}

/// The plans that wait, by number. Each is done once.
#[derive(Default)]
pub(crate) struct Announced(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    last: u64,
    plans: BTreeMap<u64, (Scope, Plan)>,
}

impl Announced {
    pub(crate) fn keep(&self, scope: &Scope, plan: Plan) -> u64 {
        let mut waiting = lock(&self.0);
        waiting.last += 1;
        let number = waiting.last;
        waiting.plans.insert(number, (scope.clone(), plan));
        if waiting.plans.len() > WAITING {
            waiting.plans.pop_first();
        }
        number
    }

    /// The plan with this number, if it is about this conversation and was not done yet.
    pub(crate) fn take(&self, scope: &Scope, number: u64) -> Option<Plan> {
        let mut waiting = lock(&self.0);
        if waiting.plans.get(&number).is_none_or(|(of, _)| of != scope) {
            return None;
        }
        waiting.plans.remove(&number).map(|(_, plan)| plan)
    }

    pub(crate) fn clear(&self) {
        lock(&self.0).plans.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_done_once_and_in_its_own_conversation() {
        let announced = Announced::default();
        let other = Scope::Named { id: "other".into() };
        let number = announced.keep(&Scope::Default, Plan::Forget(ForgetPlan::default()));
        assert!(announced.take(&other, number).is_none());
        assert!(announced.take(&Scope::Default, number).is_some());
        assert!(announced.take(&Scope::Default, number).is_none());
    }
}
