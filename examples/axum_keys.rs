//! An API on axum whose clients have keys, and whose keys have plans; and a log-in where only
//! failures count.
//!
//! ```sh
//! cargo run -p tollgate-http --features axum,file --example axum_keys
//! curl -i -H 'x-api-key: basic-1' 'http://127.0.0.1:3000/api/hello#[1-3]'
//! curl -i -H 'x-api-key: pro-1' 'http://127.0.0.1:3000/api/hello#[1-3]'
//! curl -i -d 'guess' 'http://127.0.0.1:3000/login#[1-4]'
//! ```

#![expect(
    clippy::print_stdout,
    reason = "it tells whoever starts it where to ask"
)]

use std::error::Error;
use std::net::SocketAddr;

use axum::Router;
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::routing::{get, post};
use tokio::net::TcpListener;
use tollgate_http::{Headers, Limits, Policy, RateLimitLayer, Reset};

const POLICY: &str = r#"
# Whoever has a key gets two requests at once and five a minute; whoever pays, more.
[[limit]]
name        = "per-key"
match       = { path = "/api/**" }
key         = ["header:x-api-key"]
missing_key = "refuse"
rate        = "5/min"
burst       = 2
plan_by     = "descriptor:plan"

[[limit.plan]]
name  = "pro"
rate  = "100/min"
burst = 20

[[limit.plan]]
name      = "internal"
unlimited = true

# Three wrong passwords in a quarter of an hour, from anywhere near.
[[limit]]
name          = "log-in"
match         = { path = "/login", method = "POST" }
key           = ["ip"]
algorithm     = "sliding-log"
limit         = 3
window        = "15m"
refund_status = ["2xx"]
"#;

/// Of which plan a request's key is: looked up where a service keeps its customers.
fn plan(head: &Parts) -> Option<&'static str> {
    match head.headers.get("x-api-key")?.as_bytes() {
        b"pro-1" => Some("pro"),
        b"internal-1" => Some("internal"),
        _ => None,
    }
}

async fn log_in(password: String) -> StatusCode {
    if password == "open sesame" {
        StatusCode::NO_CONTENT
    } else {
        StatusCode::UNAUTHORIZED
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let limits = Limits::builder(Policy::from_toml(POLICY)?)
        .descriptor("plan", plan)
        .unidentified_status(StatusCode::FORBIDDEN)
        .headers(Headers::new().legacy(Reset::Delta))
        .build()?;
    let app = Router::new()
        .route("/api/hello", get(|| async { "hello\n" }))
        .route("/login", post(log_in))
        .layer(RateLimitLayer::from(limits));

    let address = std::env::args().nth(1);
    let listener = TcpListener::bind(address.as_deref().unwrap_or("127.0.0.1:3000")).await?;
    println!("listening on http://{}", listener.local_addr()?);
    // With the addresses of connections: the second limit goes by them.
    let app = app.into_make_service_with_connect_info::<SocketAddr>();
    axum::serve(listener, app).await?;
    Ok(())
}
