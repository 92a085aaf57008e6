//! The layer around services of other kinds than the tests' own.

use std::convert::Infallible;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tollgate::Rate;
use tollgate_http::proxies::Peer;
use tollgate_http::{Policy, RateLimit, RateLimitLayer};
use tower::{Layer, Service, ServiceExt};

use crate::harness::{App, bucket, from, limit, run};

fn two() -> App {
    App::new([limit("two", bucket(Rate::per_hour(1), 2))])
}

/// An error of the service's passes through as it is; what was taken stays taken.
#[test]
fn the_services_error_is_its_own() {
    #[derive(Debug, PartialEq)]
    struct Boom(u8);
    let app = two();
    let failing =
        tower::service_fn(|_: Request<()>| async { Err::<Response<Full<Bytes>>, Boom>(Boom(7)) });
    let service = app.layer.layer(failing);
    for _ in 0..2 {
        let error: Boom = run(service.clone().oneshot(from("192.0.2.1"))).unwrap_err();
        assert_eq!(error, Boom(7));
    }
    let refused = run(service.oneshot(from("192.0.2.1"))).unwrap();
    assert_eq!(refused.status(), 429);
}

/// A body of another kind, whose data are no `Bytes`, with trailers.
struct Odd(u8);

#[derive(Debug)]
struct Chunk(Bytes);

impl From<Bytes> for Chunk {
    fn from(bytes: Bytes) -> Self {
        Self(bytes)
    }
}

impl bytes::Buf for Chunk {
    fn remaining(&self) -> usize {
        self.0.len()
    }
    fn chunk(&self) -> &[u8] {
        &self.0
    }
    fn advance(&mut self, by: usize) {
        self.0.advance(by);
    }
}

impl Body for Odd {
    type Data = Chunk;
    type Error = u8;
    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Chunk>, u8>>> {
        self.0 += 1;
        Poll::Ready(match self.0 {
            1 => Some(Ok(Frame::data(Chunk(Bytes::from_static(b"data"))))),
            2 => {
                let mut trailers = HeaderMap::new();
                trailers.insert("x-sum", "9".parse().unwrap());
                Some(Ok(Frame::trailers(trailers)))
            }
            3 => Some(Err(5)),
            _ => None,
        })
    }
}

#[test]
fn bodies_pass_frame_by_frame() {
    let app = App::new([limit("one", bucket(Rate::per_hour(1), 1))]);
    let odd =
        tower::service_fn(|_: Request<()>| async { Ok::<_, Infallible>(Response::new(Odd(0))) });
    let service = app.layer.layer(odd);
    let mut allowed = run(service.clone().oneshot(from("192.0.2.1"))).unwrap();
    let frames = run(async {
        let body = allowed.body_mut();
        let data = body.frame().await.unwrap().unwrap().into_data().unwrap();
        let trailers = body
            .frame()
            .await
            .unwrap()
            .unwrap()
            .into_trailers()
            .unwrap();
        let error = body.frame().await.unwrap().unwrap_err();
        (
            data.0,
            trailers["x-sum"].clone(),
            error,
            body.frame().await.is_none(),
        )
    });
    assert_eq!(
        frames,
        (Bytes::from_static(b"data"), "9".parse().unwrap(), 5, true)
    );
    let refused = run(service.oneshot(from("192.0.2.1"))).unwrap();
    let length = refused.body().size_hint().exact().unwrap();
    assert!(!refused.body().is_end_stream());
    let body = run(refused.into_body().collect()).unwrap().to_bytes();
    assert_eq!(u64::try_from(body.len()).unwrap(), length);
}

/// The layer asks its service whether it is ready, and is `Clone` where that is.
#[test]
fn readiness_is_the_services() {
    #[derive(Clone)]
    struct Never;
    impl Service<Request<()>> for Never {
        type Response = Response<Full<Bytes>>;
        type Error = &'static str;
        type Future = std::future::Ready<Result<Self::Response, Self::Error>>;
        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
            Poll::Ready(Err("closed"))
        }
        fn call(&mut self, _: Request<()>) -> Self::Future {
            panic!("it never was ready");
        }
    }
    fn is_clone<T: Clone + Send + Sync + 'static>(_: &T) {}
    let service: RateLimit<Never> = two().layer.layer(Never);
    is_clone(&service);
    is_clone(&two().layer);
    let error = run(service.oneshot(from("192.0.2.1"))).unwrap_err();
    assert_eq!(error, "closed");
}

/// A server of hyper's, with nothing of axum: the peer is told by an extension.
#[test]
fn on_hyper() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let layer = RateLimitLayer::new(Rate::per_hour(1).burst(2), 100).unwrap();
    let address = runtime.block_on(async move {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            loop {
                let (stream, peer) = listener.accept().await.unwrap();
                let hello = tower::service_fn(|_: Request<hyper::body::Incoming>| async {
                    Ok::<_, Infallible>(Response::new(Full::<Bytes>::from("hello")))
                });
                let limited = layer.layer(hello);
                let service = tower::service_fn(move |mut request: Request<_>| {
                    request.extensions_mut().insert(Peer::Address(peer.ip()));
                    limited.clone().oneshot(request)
                });
                let connection = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
                tokio::spawn(connection);
            }
        });
        address
    });
    let ask = || {
        let mut stream = TcpStream::connect(address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        stream
            .write_all(b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
            .unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text.lines().next().unwrap().to_owned()
    };
    let told: Vec<String> = (0..3).map(|_| ask()).collect();
    assert_eq!(
        told,
        [
            "HTTP/1.1 200 OK",
            "HTTP/1.1 200 OK",
            "HTTP/1.1 429 Too Many Requests"
        ]
    );
}

/// arkavo-org/arkavo-edge#599, twilight-rs/http-proxy#62, pubky/pkdns#51: a thousand requests at
/// once on one thread, from more clients than there is room for, while somebody asks for figures
/// and reloads: all are answered, once, and the table stays bounded.
#[test]
fn b32_churn_stalls_nobody() {
    fn policy() -> Policy {
        let a = limit("a", bucket(Rate::per_hour(1), 1)).with_max_clients(100);
        Policy::new(vec![a]).unwrap()
    }
    let app = App::with(policy(), |builder| builder);
    let told = run(async {
        let asked: Vec<_> = (0..1_000_u32)
            .map(|at| {
                let layer = app.layer.clone();
                tokio::spawn(async move {
                    let peer = std::net::Ipv4Addr::from(0x0b00_0000 + at % 500);
                    let service = layer.layer(tower::service_fn(crate::harness::echo));
                    let response = service.oneshot(from(&peer.to_string())).await.unwrap();
                    tokio::task::yield_now().await;
                    response.status().as_u16()
                })
            })
            .collect();
        let limits = app.layer.limits().clone();
        let watcher = tokio::spawn(async move {
            for _ in 0..50 {
                limits.reload(policy()).unwrap();
                assert_eq!(limits.statistics().len(), 1);
                tokio::task::yield_now().await;
            }
        });
        let mut told = Vec::new();
        for one in asked {
            told.push(one.await.unwrap());
        }
        watcher.await.unwrap();
        told
    });
    assert_eq!(told.len(), 1_000);
    assert_eq!(told.iter().filter(|status| **status == 200).count(), 100);
    let (_, figures) = app.layer.limits().statistics().remove(0);
    assert_eq!(
        (figures.allowed, figures.limited + figures.client_limit),
        (100, 900)
    );
}
