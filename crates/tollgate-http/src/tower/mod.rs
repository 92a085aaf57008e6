//! Limits as a layer of tower: for axum, hyper, tonic, and whatever else is made of services.

mod answer;
mod body;
mod future;

use std::task::{Context, Poll};

use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response};
use http_body::Body;
use tollgate::Quota;
use tollgate_policy::proxies::Proxies;
use tollgate_policy::{Key, Limit, Policy, Rule};
use tower_layer::Layer;
use tower_service::Service;

use crate::limits::{Limits, LimitsError};

pub use body::ResponseBody;
pub use future::ResponseFuture;

/// Limits around services: each request is admitted, held back, or answered in its service's place.
///
/// Services around which one layer and its clones are put share its buckets: put it around a whole
/// router for one limit, and a layer of its own around each route for one each.
///
/// ```
/// use axum::{Router, routing::get};
/// use tollgate::Rate;
/// use tollgate_http::{Key, RateLimitLayer};
///
/// // Five a second and ten at once for each API key, for at most 100,000 keys at a time.
/// let limit = RateLimitLayer::new(Rate::per_second(5).burst(10), 100_000)?
///     .key(Key::header("x-api-key"));
/// let app: Router = Router::new().route("/", get(|| async { "hello" })).layer(limit);
///
/// let none_at_all = RateLimitLayer::new(Rate::per_second(5).burst(0), 100_000);
/// assert_eq!(none_at_all.unwrap_err().to_string(), "burst is 0; the least is 1 token");
/// # Ok::<(), tollgate_http::LimitsError>(())
/// ```
#[derive(Clone, Debug)]
pub struct RateLimitLayer {
    limits: Limits<Parts>,
}

impl RateLimitLayer {
    /// One limit, called `default`, for each client's address, and for so many clients at a time.
    /// For more than that, take [`Limits`].
    ///
    /// # Errors
    ///
    /// A number that no limiter can do with.
    pub fn new(quota: Quota, max_clients: usize) -> Result<Self, LimitsError> {
        let limit = match Limit::new("default", Rule::TokenBucket(quota)) {
            Ok(limit) => limit.with_max_clients(max_clients),
            Err(error) => return Err(LimitsError::Limit(error)),
        };
        let policy = Policy::new(vec![limit]).map_err(LimitsError::Policy)?;
        Ok(Self::from(Limits::builder(policy).build()?))
    }

    /// The limits.
    #[must_use]
    pub fn limits(&self) -> &Limits<Parts> {
        &self.limits
    }

    /// Tells clients apart by that, under each of its limits. Nobody's tokens are carried over: set
    /// it before the layer is used. What a service says itself takes [`key_by`](Self::key_by).
    #[must_use]
    pub fn key(self, key: Key) -> Self {
        Self::from(self.limits.with_one_key(&key))
    }

    /// Tells clients apart by what the service says about a request; `None` and an empty value are
    /// a missing key.
    ///
    /// ```
    /// use http::request::Parts;
    /// use tollgate::Rate;
    /// use tollgate_http::RateLimitLayer;
    ///
    /// #[derive(Clone)]
    /// struct User(String); // as a log-in leaves it behind
    ///
    /// let limit = RateLimitLayer::new(Rate::per_second(5).burst(10), 100_000)?
    ///     .key_by(|head: &Parts| head.extensions.get::<User>().map(|user| user.0.clone()));
    /// # Ok::<(), tollgate_http::LimitsError>(())
    /// ```
    #[must_use]
    pub fn key_by<V: Into<Vec<u8>>>(
        self,
        says: impl Fn(&Parts) -> Option<V> + Send + Sync + 'static,
    ) -> Self {
        const NAME: &str = "key";
        let says = move |head: &Parts| says(head).map(Into::into);
        let limits = self.limits.with_one_key(&Key::descriptor(NAME));
        let limits = limits.with(|settings| {
            settings.descriptors.retain(|(own, _)| own != NAME);
            settings
                .descriptors
                .push((NAME.to_owned(), std::sync::Arc::new(says)));
        });
        Self::from(limits)
    }

    /// Takes so many tokens for a request, at least 1.
    #[must_use]
    pub fn cost(self, says: impl Fn(&Parts) -> u64 + Send + Sync + 'static) -> Self {
        let limits = self.limits.with(|settings| {
            settings.costs = vec![(None, std::sync::Arc::new(says))];
        });
        Self::from(limits)
    }

    /// Believes those proxies about clients' addresses; nobody, unless told.
    ///
    /// ```
    /// use tollgate::Rate;
    /// use tollgate_http::RateLimitLayer;
    /// use tollgate_http::proxies::{AddressHeader, Proxies};
    ///
    /// let proxies = Proxies::new(["10.0.0.0/8".parse()?], AddressHeader::XForwardedFor);
    /// let limit = RateLimitLayer::new(Rate::per_second(5).burst(10), 100_000)?.proxies(proxies);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn proxies(self, proxies: Proxies) -> Self {
        Self::from(self.limits.with_proxies(&proxies))
    }
}

impl From<Limits<Parts>> for RateLimitLayer {
    fn from(limits: Limits<Parts>) -> Self {
        Self { limits }
    }
}

impl<S> Layer<S> for RateLimitLayer {
    type Service = RateLimit<S>;

    fn layer(&self, inner: S) -> RateLimit<S> {
        let limits = self.limits.clone();
        RateLimit { inner, limits }
    }
}

/// A service under limits: see [`RateLimitLayer`].
///
/// It answers refusals itself, and has its service's error. A service that fails has answered with
/// no status, so nothing is given back for it; nor is for a request that nobody waits for any more.
#[derive(Clone, Debug)]
pub struct RateLimit<S> {
    inner: S,
    limits: Limits<Parts>,
}

impl<S> RateLimit<S> {
    /// The service.
    pub fn inner(&self) -> &S {
        &self.inner
    }
}

impl<S, B, R> Service<Request<B>> for RateLimit<S>
where
    S: Service<Request<B>, Response = Response<R>> + Clone,
    R: Body,
    R::Data: From<Bytes>,
{
    type Response = Response<ResponseBody<R>>;
    type Error = S::Error;
    type Future = ResponseFuture<S, B>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> ResponseFuture<S, B> {
        ResponseFuture::new(&self.limits, &mut self.inner, request)
    }
}
