//! Limits as a layer of tower: for axum, hyper, tonic, and whatever else is made of services.

mod answer;
mod body;
mod future;

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response};
use http_body::Body;
use tollgate::Quota;
use tollgate_policy::proxies::Proxies;
use tollgate_policy::{Key, Limit, Policy};
use tower_layer::Layer;
use tower_service::Service;

use crate::fields::Headers;
use crate::limits::{Limits, LimitsError};

pub use body::ResponseBody;
pub use future::ResponseFuture;

/// Limits around services: each request is admitted, held back, or answered in its service's place.
///
/// Services around which one layer and its clones are put share its buckets: put it around a whole
/// router for one limit, and a layer of its own around each route for one each. Put around both, it
/// charges twice. A CORS layer belongs outside of it (`.layer(limit).layer(cors)` in axum), or
/// browsers may not read refusals, and preflights are charged.
///
/// In tests, a [`Limits`] on a `ManualClock` moves time by hand, and a `ConnectInfo` or
/// [`Peer`](tollgate_policy::proxies::Peer) among a request's extensions is its address.
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
    /// For more than that there is [`of`](Self::of), and [`Limits`].
    ///
    /// The address is that of the connection, which servers tell in their own ways: in axum, with
    /// this crate's feature `axum` and `into_make_service_with_connect_info::<SocketAddr>()`; see
    /// the [crate's page](crate#whose-bucket). **Where nobody tells it, all share one bucket**, and
    /// a warning says so, once.
    ///
    /// # Errors
    ///
    /// A number that no limiter can do with.
    pub fn new(quota: Quota, max_clients: usize) -> Result<Self, LimitsError> {
        let limit = Limit::new("default", quota).map_err(LimitsError::Limit)?;
        Self::of(limit.with_max_clients(max_clients))
    }

    /// That limit: with a name of its own, which clients are told, with what becomes of requests
    /// without a key, only counting, and so on.
    ///
    /// # Errors
    ///
    /// A number that no limiter can do with, or a key that goes by a descriptor: see
    /// [`key_by`](Self::key_by).
    ///
    /// ```
    /// use tollgate_http::{Key, Limit, MissingKey, Rate, RateLimitLayer};
    ///
    /// let limit = Limit::new("per-key", Rate::per_second(5).burst(10))?
    ///     .with_key(Key::header("x-api-key"))
    ///     .with_missing_key(MissingKey::Refuse)
    ///     .with_max_clients(100_000);
    /// let layer = RateLimitLayer::of(limit)?;
    /// assert!(Limit::new("per key", Rate::per_second(5).burst(10)).is_err());
    /// # let _ = layer;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn of(limit: Limit) -> Result<Self, LimitsError> {
        let policy = Policy::new(vec![limit]).map_err(LimitsError::Policy)?;
        Ok(Self::from(Limits::builder(policy).build()?))
    }

    /// The limits of this layer and its clones: [`key`](Self::key) and the like make another layer.
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
            settings.descriptors.push((NAME.to_owned(), Arc::new(says)));
        });
        Self::from(limits)
    }

    /// Takes so many tokens for a request, at least 1.
    #[must_use]
    pub fn cost(self, says: impl Fn(&Parts) -> u64 + Send + Sync + 'static) -> Self {
        let limits = self.limits.with(|settings| {
            settings.costs.push((None, Arc::new(says)));
        });
        Self::from(limits)
    }

    /// What the header of an answer is to say.
    #[must_use]
    pub fn headers(self, headers: Headers) -> Self {
        Self::from(self.limits.with(|settings| settings.headers = headers))
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
