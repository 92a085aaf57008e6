//! Answers in tower's terms.

use http::header::{
    ACCESS_CONTROL_EXPOSE_HEADERS, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, Entry, RETRY_AFTER,
};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response};
use tollgate_policy::Verdict;

use super::body::ResponseBody;
use crate::fields::{Header, Name};
use crate::limits::Limits;
use crate::refusal::MEDIA_TYPE;

/// RFC 6585: nobody is to answer anybody else with it.
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

/// In which form a request is to be refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A problem.
    Http,
    /// The same without a body, which an answer to `HEAD` has not.
    Head,
    /// A status of gRPC.
    Grpc,
}

impl Form {
    pub(super) fn of(parts: &Parts) -> Self {
        // A call is a POST of exactly that type (or `application/grpc+proto`, or with parameters):
        // what else says so is answered as anything else is.
        let is_kind = || {
            let kind = parts.headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
            let rest = kind.and_then(|kind| kind.strip_prefix(b"application/grpc"));
            matches!(rest, Some([] | [b'+' | b';' | b' ', ..]))
        };
        let is_grpc = cfg!(feature = "tonic") && parts.method == Method::POST && is_kind();
        if is_grpc {
            Self::Grpc
        } else if parts.method == Method::HEAD {
            Self::Head
        } else {
            Self::Http
        }
    }
}

/// The answer to a request that is refused.
pub(super) fn refused<R>(
    limits: &Limits<Parts>,
    verdict: &Verdict,
    form: Form,
) -> Response<ResponseBody<R>> {
    let refusal = limits.refusal(verdict);
    #[cfg(feature = "tonic")]
    if form == Form::Grpc {
        let mut response = crate::grpc::refused(&refusal, verdict).map(ResponseBody::own);
        response.headers_mut().insert(CACHE_CONTROL, NO_STORE);
        limits.write(verdict, response.headers_mut());
        return response;
    }
    let length = HeaderValue::from(refusal.body.len());
    let body = match form {
        Form::Http | Form::Grpc => refusal.body,
        Form::Head => String::new(),
    };
    let mut response = Response::new(ResponseBody::own(body));
    *response.status_mut() = refusal.status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
    headers.insert(CONTENT_LENGTH, length);
    headers.insert(CACHE_CONTROL, NO_STORE);
    limits.write(verdict, headers);
    response
}

impl Header for HeaderMap {
    fn has(&self, name: Name) -> bool {
        self.contains_key(header_name(name))
    }

    fn add(&mut self, name: Name, value: &[u8], beside: impl Fn(&[u8]) -> bool) {
        let Ok(value) = HeaderValue::from_bytes(value) else {
            return;
        };
        match self.entry(header_name(name)) {
            Entry::Vacant(none) => _ = none.insert(value),
            Entry::Occupied(mut lines) => {
                if lines.iter().all(|line| beside(line.as_bytes())) {
                    lines.append(value);
                }
            }
        }
    }

    fn put(&mut self, name: Name, value: &[u8]) {
        if let Ok(value) = HeaderValue::from_bytes(value) {
            self.insert(header_name(name), value);
        }
    }
}

fn header_name(name: Name) -> HeaderName {
    const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
    const FIGURES: HeaderName = HeaderName::from_static("ratelimit");
    const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
    const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
    const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");
    match name {
        Name::RateLimitPolicy => POLICY,
        Name::RateLimit => FIGURES,
        Name::RetryAfter => RETRY_AFTER,
        Name::LegacyLimit => LIMIT,
        Name::LegacyRemaining => REMAINING,
        Name::LegacyReset => RESET,
        Name::Expose => ACCESS_CONTROL_EXPOSE_HEADERS,
    }
}
