//! Refusals in gRPC's terms.
//!
//! `RESOURCE_EXHAUSTED`, with `google.rpc.RetryInfo` among its details and, for clients that retry
//! by themselves, `grpc-retry-pushback-ms` (gRPC proposal A6), both rounded up to the millisecond.
//! The HTTP status is 200, as with all that gRPC answers.

use std::time::Duration;

use http::{Response, StatusCode};
use tollgate_policy::Verdict;
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

use crate::refusal::{Cause, Refusal};

/// Of a number that is none a client makes "never", which is meant by this one.
const NEVER: i32 = -1;

/// The answer to a call that is refused: nothing but its status.
pub(crate) fn refused(refusal: &Refusal, verdict: &Verdict) -> Response<String> {
    let wait = verdict.refused_by().and_then(|said| said.again_after);
    let wait_ms = wait.map(|wait| wait.as_nanos().div_ceil(1_000_000));
    let details = wait_ms.map_or_else(ErrorDetails::new, |wait_ms| {
        let wait_ms = u64::try_from(wait_ms).unwrap_or(u64::MAX);
        ErrorDetails::with_retry_info(Some(Duration::from_millis(wait_ms)))
    });
    let pushback = match (wait_ms, refusal.cause) {
        (Some(wait_ms), _) => Some(i32::try_from(wait_ms).unwrap_or(NEVER)),
        (None, Cause::TooLarge) => Some(NEVER),
        // When it is worth trying again nobody knows: the client's own pace is as good as any.
        (None, _) => None,
    };
    let mut metadata = MetadataMap::new();
    if let Some(pushback) = pushback {
        metadata.insert("grpc-retry-pushback-ms", MetadataValue::from(pushback));
    }
    let (code, detail) = (code(refusal), refusal.detail.clone());
    let status = Status::with_error_details_and_metadata(code, detail, details, metadata);
    status.into_http()
}

fn code(refusal: &Refusal) -> Code {
    match refusal.cause {
        Cause::Limited | Cause::TooLarge | Cause::ClientLimit => Code::ResourceExhausted,
        Cause::Store => Code::Unavailable,
        Cause::Unidentified => match refusal.status {
            StatusCode::UNAUTHORIZED => Code::Unauthenticated,
            StatusCode::FORBIDDEN => Code::PermissionDenied,
            _ => Code::InvalidArgument,
        },
    }
}
