//! What a refused request is answered with.

use http::StatusCode;
use serde::Serialize;
use tollgate::Decision;
use tollgate_policy::{Limit, Outcome, Verdict};

use crate::fields;

/// The media type of the body (RFC 9457).
pub(crate) const MEDIA_TYPE: &str = "application/problem+json";

/// Problem types of draft-ietf-httpapi-ratelimit-headers-10, with the titles that it registers, and
/// those that are Tollgate's own. A URN tells no place to look at: nothing is there.
const QUOTA_EXCEEDED: Kind = Kind {
    uri: "https://iana.org/assignments/http-problem-types#quota-exceeded",
    title: "Request cannot be satisfied as assigned quota has been exceeded",
};
const REDUCED_CAPACITY: Kind = Kind {
    uri: "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",
    title: "Request cannot be satisfied due to temporary server capacity constraints",
};
const ABNORMAL_USAGE: Kind = Kind {
    uri: "https://iana.org/assignments/http-problem-types#abnormal-usage-detected",
    title: "Request not satisfied due to detection of abnormal request pattern",
};
const CLIENT_LIMIT: Kind = Kind {
    uri: "urn:tollgate:problem:client-limit",
    title: "As many clients as may be are tracked",
};
const UNIDENTIFIED: Kind = Kind {
    uri: "urn:tollgate:problem:unidentified",
    title: "The request does not say whose it is",
};

struct Kind {
    uri: &'static str,
    title: &'static str,
}

/// With which statuses refusals are answered that are not about a client's tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RefusalStatuses {
    pub(crate) client_limit: StatusCode,
    pub(crate) unidentified: StatusCode,
}

impl Default for RefusalStatuses {
    fn default() -> Self {
        Self {
            client_limit: StatusCode::TOO_MANY_REQUESTS,
            unidentified: StatusCode::BAD_REQUEST,
        }
    }
}

/// What a refused request is answered with, in any framework.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) body: String,
    /// The same for people.
    #[cfg(feature = "tonic")]
    pub(crate) detail: String,
    /// What it is about.
    #[cfg(feature = "tonic")]
    pub(crate) cause: Cause,
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Not enough tokens, or a ban.
    Limited,
    /// More than a bucket holds.
    TooLarge,
    /// No place for a new client.
    ClientLimit,
    /// It lacks a part of the key.
    Unidentified,
    /// The store failed.
    Store,
}

/// RFC 9457, with the member that the draft adds.
#[derive(Serialize)]
struct Problem<'p> {
    #[serde(rename = "type")]
    kind: &'static str,
    title: &'static str,
    status: u16,
    detail: &'p str,
    /// The names of all limits that have too little left.
    #[serde(rename = "violated-policies", skip_serializing_if = "Vec::is_empty")]
    violated: Vec<&'p str>,
}

impl Refusal {
    /// Of a verdict that is one.
    pub(crate) fn of(verdict: &Verdict, statuses: RefusalStatuses) -> Self {
        let Some(said) = verdict.refused_by() else {
            let status = StatusCode::SERVICE_UNAVAILABLE;
            let detail = "the limits cannot be looked up at present".to_owned();
            return Self::new(status, &REDUCED_CAPACITY, verdict, detail, Cause::Store);
        };
        let limit = verdict.policy().limits().get(said.limit);
        let name = limit.map_or("", Limit::name);
        let wait = fields::retry_after(verdict);
        let wait = wait.map_or_else(String::new, |seconds| format!("; retry after {seconds} s"));
        let too_many = StatusCode::TOO_MANY_REQUESTS;
        let (status, kind, detail, cause) = match said.outcome {
            Outcome::Unidentified => (
                statuses.unidentified,
                &UNIDENTIFIED,
                format!(
                    "limit {name} goes by {}",
                    limit.map_or_else(String::new, parts)
                ),
                Cause::Unidentified,
            ),
            Outcome::Decided(Decision::ClientLimit) => (
                statuses.client_limit,
                &CLIENT_LIMIT,
                format!("limit {name} has no room for another client at present"),
                Cause::ClientLimit,
            ),
            Outcome::Decided(Decision::TooLarge { burst }) => (
                too_many,
                &QUOTA_EXCEEDED,
                format!(
                    "the request costs {}; limit {name} never has more than {burst}",
                    said.cost
                ),
                Cause::TooLarge,
            ),
            Outcome::Decided(Decision::Banned { .. }) => (
                too_many,
                &ABNORMAL_USAGE,
                format!("limit {name} refuses all for a time{wait}"),
                Cause::Limited,
            ),
            Outcome::Decided(_) | Outcome::NotAsked | _ => (
                too_many,
                &QUOTA_EXCEEDED,
                if said.cost > 1 {
                    format!(
                        "limit {name} has too little left for a cost of {}{wait}",
                        said.cost
                    )
                } else {
                    format!("limit {name} is used up{wait}")
                },
                Cause::Limited,
            ),
        };
        Self::new(status, kind, verdict, detail, cause)
    }

    fn new(
        status: StatusCode,
        kind: &Kind,
        verdict: &Verdict,
        detail: String,
        cause: Cause,
    ) -> Self {
        let is_short = |decision: Decision| match decision {
            Decision::Limited { .. } | Decision::Banned { .. } | Decision::TooLarge { .. } => true,
            Decision::Allowed { .. } | Decision::ClientLimit | _ => false,
        };
        let violated = match cause {
            Cause::Limited | Cause::TooLarge => {
                let short = verdict.told().filter(|told| is_short(told.decision));
                short.map(|told| told.limit.name()).collect()
            }
            Cause::ClientLimit | Cause::Unidentified | Cause::Store => Vec::new(),
        };
        let problem = Problem {
            kind: kind.uri,
            title: kind.title,
            status: status.as_u16(),
            detail: &detail,
            violated,
        };
        // Texts and a number: there is nothing that JSON cannot hold.
        let body = serde_json::to_string(&problem).unwrap_or_default();
        Self {
            status,
            body,
            #[cfg(feature = "tonic")]
            detail,
            #[cfg(feature = "tonic")]
            cause,
        }
    }
}

/// What a limit goes by, for the client's author.
fn parts(limit: &Limit) -> String {
    let parts = limit.key().parts().iter().map(ToString::to_string);
    parts.collect::<Vec<_>>().join(" and ")
}
