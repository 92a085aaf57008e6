//! limitador, in memory: a limit with one variable, the client, and a map of variables made for
//! each call, as its documentation has it. No conditions.
//!
//! It counts in fixed windows: a bucket's burst in the time in which it fills is the same quota.

use std::collections::HashMap;

use limitador::RateLimiter;
use limitador::limit::{Context, Limit, Namespace};

use super::{Contender, GENEROUS_A_SECOND, GENEROUS_BURST, Keyed, Load};
use crate::error::Error;
use crate::keys::Name;
use crate::row::Answer;

pub(crate) fn keyed(answer: Answer, max_clients: usize) -> Result<Box<dyn Contender>, Error> {
    let (calls, seconds) = match answer.into() {
        Load::Generous => (GENEROUS_BURST, GENEROUS_BURST / GENEROUS_A_SECOND),
        Load::Drained => (1, 3_600),
    };
    let client = "client"
        .try_into()
        .map_err(|error| Error::new(format!("limitador: {error}")))?;
    let limit = Limit::new("bench", calls.into(), seconds.into(), [], [client]);
    let limiter = RateLimiter::new(u64::try_from(max_clients).unwrap_or(u64::MAX));
    limiter.add_limit(limit);
    let namespace = Namespace::from("bench");
    Ok(Box::new(Keyed(move |name: &Name| {
        let variables = HashMap::from([("client".to_owned(), name.as_string().clone())]);
        let context = Context::from(variables);
        let decision = limiter.check_rate_limited_and_update(&namespace, &context, 1);
        decision.is_ok_and(|decision| !decision.limited)
    })))
}
