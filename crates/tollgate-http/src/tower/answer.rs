//! Answers in tower's terms.

use http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response};
use tollgate_policy::Verdict;

use super::body::ResponseBody;
use crate::fields::{Field, Meeting};
use crate::limits::Limits;
use crate::refusal::MEDIA_TYPE;

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
        let is_grpc = parts.headers.get(CONTENT_TYPE).is_some_and(|kind| {
            let kind = kind.as_bytes();
            kind.starts_with(b"application/grpc") && !kind.starts_with(b"application/grpc-web")
        });
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
        add(limits.fields(verdict), response.headers_mut());
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
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    add(limits.fields(verdict), headers);
    response
}

/// Adds fields to those that an answer has.
pub(super) fn add(fields: Vec<Field>, headers: &mut HeaderMap) {
    let is_given = fields
        .iter()
        .any(|field| field.meeting == Meeting::Given && headers.contains_key(field.name));
    for field in fields {
        let lines = headers.get_all(field.name).iter();
        if !field.joins(lines.map(HeaderValue::as_bytes)) {
            continue;
        }
        // Names of limits, digits and what stands in this crate.
        let Ok(value) = HeaderValue::try_from(field.value) else {
            continue;
        };
        let name = HeaderName::from_static(field.name);
        match field.meeting {
            Meeting::Given if is_given => {}
            Meeting::Replaced => _ = headers.insert(name, value),
            Meeting::Listed | Meeting::Added | Meeting::Given => _ = headers.append(name, value),
        }
    }
}
