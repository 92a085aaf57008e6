//! Limits as a middleware of actix-web.

use std::future::{Future, Ready, ready};
use std::pin::Pin;
use std::rc::Rc;

use actix_web::body::{EitherBody, MessageBody};
use actix_web::dev::{Service, ServiceRequest, ServiceResponse, Transform};
use actix_web::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use actix_web::http::{Method, StatusCode};
use actix_web::{Error, HttpResponse};
use tollgate_policy::Verdict;
use tollgate_policy::proxies::Peer;

use crate::fields::{Field, Meeting};
use crate::head::Head;
use crate::limits::{Limits, Ruling};
use crate::refusal::MEDIA_TYPE;

/// Limits around an application, a scope or a resource of actix-web.
///
/// Make the [`Limits`] outside the closure that makes an application for each worker: made inside,
/// each worker has buckets of its own.
///
/// ```
/// use actix_web::App;
/// use actix_web::dev::ServiceRequest;
/// use tollgate::Rate;
/// use tollgate_http::actix::RateLimit;
/// use tollgate_http::{Key, Limit, Limits, Policy, Rule};
///
/// let rule = Rule::TokenBucket(Rate::per_second(5).burst(10));
/// let limit = Limit::new("per-key", rule)?.with_key(Key::header("x-api-key"));
/// let limits: Limits<ServiceRequest> = Limits::builder(Policy::new(vec![limit])?).build()?;
/// let app = move || App::new().wrap(RateLimit::from(limits.clone()));
/// # let _ = app;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A service's error becomes an answer outside of this: it has no fields of these limits, but its
/// status counts for what is given back.
#[derive(Clone, Debug)]
pub struct RateLimit {
    limits: Limits<ServiceRequest>,
}

impl From<Limits<ServiceRequest>> for RateLimit {
    fn from(limits: Limits<ServiceRequest>) -> Self {
        Self { limits }
    }
}

impl<S, B> Transform<S, ServiceRequest> for RateLimit
where
    S: Service<ServiceRequest, Response = ServiceResponse<B>, Error = Error> + 'static,
    B: MessageBody + 'static,
{
    type Response = ServiceResponse<EitherBody<B>>;
    type Error = Error;
    type Transform = RateLimited<S>;
    type InitError = ();
    type Future = Ready<Result<RateLimited<S>, ()>>;

    fn new_transform(&self, service: S) -> Self::Future {
        let limits = self.limits.clone();
        let service = Rc::new(service);
        ready(Ok(RateLimited { service, limits }))
    }
}

/// A service under limits: see [`RateLimit`].
#[derive(Debug)]
pub struct RateLimited<S> {
    service: Rc<S>,
    limits: Limits<ServiceRequest>,
}

impl<S, B> Service<ServiceRequest> for RateLimited<S>
where
    S: Service<ServiceRequest, Response = ServiceResponse<B>, Error = Error> + 'static,
    B: MessageBody + 'static,
{
    type Response = ServiceResponse<EitherBody<B>>;
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Error>>>>;

    actix_web::dev::forward_ready!(service);

    fn call(&self, request: ServiceRequest) -> Self::Future {
        let (service, limits) = (self.service.clone(), self.limits.clone());
        let ruling = limits.rule(&request);
        Box::pin(async move {
            let (verdict, held) = match ruling {
                Ruling::Skipped => {
                    let response = service.call(request).await?;
                    return Ok(response.map_into_left_body());
                }
                Ruling::Decided(verdict, held) => (verdict, held),
                Ruling::Asking(asking, held) => {
                    let verdict = asking.await;
                    limits.note(&verdict);
                    (verdict, held)
                }
            };
            if !verdict.is_allowed() {
                let response = refused(&limits, &verdict, request.method());
                return Ok(request.into_response(response.map_into_right_body()));
            }
            if !verdict.delay().is_zero() {
                tokio::time::sleep(verdict.delay()).await;
            }
            drop(held);
            let answered = service.call(request).await;
            let status = match &answered {
                Ok(response) => response.status(),
                Err(error) => error.as_response_error().status_code(),
            };
            let verdict = match limits.answered(verdict, status.as_u16()) {
                Ok(verdict) => verdict,
                Err(telling) => telling.await,
            };
            let mut response = answered?;
            add(limits.fields(&verdict), response.headers_mut());
            Ok(response.map_into_left_body())
        })
    }
}

/// The answer to a request that is refused.
fn refused(limits: &Limits<ServiceRequest>, verdict: &Verdict, method: &Method) -> HttpResponse {
    let refusal = limits.refusal(verdict);
    let status = StatusCode::from_u16(refusal.status.as_u16());
    let mut response = HttpResponse::build(status.unwrap_or(StatusCode::TOO_MANY_REQUESTS));
    response.insert_header((CONTENT_TYPE, MEDIA_TYPE));
    response.insert_header((CACHE_CONTROL, "no-store"));
    let mut response = if *method == Method::HEAD {
        response.finish()
    } else {
        response.body(refusal.body)
    };
    add(limits.fields(verdict), response.headers_mut());
    response
}

/// Adds fields to those that an answer has.
fn add(fields: Vec<Field>, headers: &mut HeaderMap) {
    let is_given = fields
        .iter()
        .any(|field| field.meeting == Meeting::Given && headers.contains_key(field.name));
    for field in fields {
        let lines = headers.get_all(field.name).map(HeaderValue::as_bytes);
        if !field.joins(lines) {
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
            Meeting::Listed | Meeting::Added | Meeting::Given => headers.append(name, value),
        }
    }
}

impl Head for ServiceRequest {
    fn method(&self) -> &str {
        self.method().as_str()
    }

    fn target(&self) -> &str {
        let target = self.head().uri.path_and_query();
        target.map_or("", |target| target.as_str())
    }

    fn peer(&self) -> Peer {
        let address = self.peer_addr();
        address.map_or(Peer::Unknown, |address| Peer::Address(address.ip()))
    }

    fn header(&self, name: &str, each: &mut dyn FnMut(&[u8])) {
        for line in self.headers().get_all(name) {
            each(line.as_bytes());
        }
    }
}
