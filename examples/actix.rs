//! A service on actix-web with a limit for each client, and a dearer page.
//!
//! ```sh
//! cargo run -p tollgate-http --features actix-web --example actix
//! curl -i 'http://127.0.0.1:3000/#[1-6]'
//! ```

#![expect(
    clippy::print_stdout,
    reason = "it tells whoever starts it where to ask"
)]

use std::error::Error;

use actix_web::dev::ServiceRequest;
use actix_web::{App, HttpServer, web};
use tollgate_http::actix::{RateLimit, limits};
use tollgate_http::{Limit, Policy, Rate};

fn cost(request: &ServiceRequest) -> u64 {
    if request.path() == "/report" { 3 } else { 1 }
}

#[actix_web::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let limit = Limit::new("per-client", Rate::per_minute(1).burst(5))?;
    // Outside the closure: all workers have the same buckets.
    let limits = limits(Policy::new(vec![limit])?).cost(cost).build()?;

    let address = std::env::args().nth(1);
    let server = HttpServer::new(move || {
        App::new()
            .wrap(RateLimit::from(limits.clone()))
            .route("/", web::get().to(|| async { "hello\n" }))
            .route("/report", web::get().to(|| async { "all of it\n" }))
    })
    .workers(2)
    .bind(address.as_deref().unwrap_or("127.0.0.1:3000"))?;
    for address in server.addrs() {
        println!("listening on http://{address}");
    }
    server.run().await?;
    Ok(())
}
