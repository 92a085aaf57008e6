//! Limits as a middleware of actix-web.

use std::future::{Future, Ready, ready};
use std::pin::Pin;
use std::rc::Rc;

use actix_web::body::{EitherBody, MessageBody};
use actix_web::dev::{Service, ServiceRequest, ServiceResponse, Transform};
use actix_web::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use actix_web::http::{Method, StatusCode};
use actix_web::{Error, HttpResponse};
use tollgate_policy::proxies::Peer;
use tollgate_policy::{Policy, Verdict};

use crate::fields::{Header, Name};
use crate::head::Head;
use crate::limits::{Builder, Limits, Ruling};
use crate::refusal::MEDIA_TYPE;

/// How to put a policy to use in actix-web: see [`RateLimit`].
pub fn limits(policy: Policy) -> Builder<ServiceRequest> {
    Builder::new(policy)
}

/// Limits around an application, a scope or a resource of actix-web.
///
/// Make the [`Limits`] outside the closure that makes an application for each worker: made inside,
/// each worker has buckets of its own.
///
/// ```
/// use actix_web::App;
/// use tollgate_http::actix::{RateLimit, limits};
/// use tollgate_http::{Key, Limit, Policy, Rate};
///
/// let limit = Limit::new("per-key", Rate::per_second(5).burst(10))?
///     .with_key(Key::header("x-api-key"));
/// let limits = limits(Policy::new(vec![limit])?).build()?;
/// let app = move || App::new().wrap(RateLimit::from(limits.clone()));
/// # let _ = app;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A handler's error is an answer by the time it is here. That of a middleware within this one
/// becomes one outside of it: its status counts for what is given back, but it has no fields of
/// these limits.
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
                // Until it is its turn in the leaky bucket's queue, by the runtime's clock.
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
            limits.write(&verdict, response.headers_mut());
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
    limits.write(verdict, response.headers_mut());
    response
}

impl Header for HeaderMap {
    fn has(&self, name: Name) -> bool {
        self.contains_key(header_name(name))
    }

    fn add(&mut self, name: Name, value: &[u8], beside: impl Fn(&[u8]) -> bool) {
        let may = self
            .get_all(header_name(name))
            .all(|line| beside(line.as_bytes()));
        if may && let Ok(value) = HeaderValue::from_bytes(value) {
            self.append(header_name(name), value);
        }
    }

    fn put(&mut self, name: Name, value: &[u8]) {
        if let Ok(value) = HeaderValue::from_bytes(value) {
            self.insert(header_name(name), value);
        }
    }
}

fn header_name(name: Name) -> HeaderName {
    HeaderName::from_static(match name {
        Name::RateLimitPolicy => "ratelimit-policy",
        Name::RateLimit => "ratelimit",
        Name::RetryAfter => "retry-after",
        Name::LegacyLimit => "x-ratelimit-limit",
        Name::LegacyRemaining => "x-ratelimit-remaining",
        Name::LegacyReset => "x-ratelimit-reset",
        Name::Expose => "access-control-expose-headers",
    })
}

impl crate::head::sealed::Sealed for ServiceRequest {}

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
