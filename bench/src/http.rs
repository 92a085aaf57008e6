//! The tower layer in an app (H2): servers on loopback, each on a thread of its own, asked in turn
//! over connections that stay open. The figure is the CPU time of the server's thread a request.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tollgate::Rate;
use tollgate_http::RateLimitLayer;
use tower_governor::GovernorLayer;
use tower_governor::governor::GovernorConfigBuilder;

use crate::cpu;
use crate::error::Error;
use crate::row::{Answer, Bench, Dist, Limiter, Row, Sample};
use crate::sets::Effort;

/// Requests that are on their way at a time.
const CONNECTIONS: usize = 16;
/// The longest answer.
const LONGEST: usize = 4_096;

const SERVERS: [Limiter; 4] = [
    Limiter::Baseline,
    Limiter::Tollgate,
    Limiter::TowerGovernor,
    Limiter::TowerGovernorHeaders,
];

/// H2: an app that says hello, without a limit and with one a client address.
pub(crate) fn samples(effort: Effort) -> Result<Vec<Sample>, Error> {
    let rounds = if effort.quick { 1_000 } else { 6_000 };
    let mut samples = Vec::new();
    for answer in [Answer::Admitted, Answer::Refused] {
        let row = Row {
            answer,
            ..Row::new(Bench::H2, 1, Dist::Hot, 0)
        };
        let mut servers = Vec::new();
        for name in SERVERS {
            let mut server = Server::start(name, answer)?;
            // What a first request costs more is not to be measured; and all but it are refused.
            let status = server.ask(200)?;
            let wanted = match (name, answer) {
                (Limiter::Baseline, _) | (_, Answer::Admitted) => 200,
                _ => 429,
            };
            if status != wanted {
                let what = format!("H2: {name:?} answers {status}, not {wanted}");
                return Err(Error::new(what));
            }
            servers.push((name, server, Vec::new()));
        }
        for _ in 0..effort.repetitions {
            for (_, server, figures) in &mut servers {
                let before = server.cpu_ns()?;
                server.ask(rounds)?;
                let spent = server.cpu_ns()? - before;
                figures.push(spent / (rounds * CONNECTIONS) as f64);
            }
        }
        let done = servers.into_iter();
        samples.extend(done.map(|(name, _, figures)| Sample { row, name, figures }));
    }
    Ok(samples)
}

/// Who wants to know how much CPU time a server's thread has taken.
type Asked = mpsc::Sender<f64>;

/// A server, and connections to it.
struct Server {
    connections: Vec<TcpStream>,
    cpu: UnboundedSender<Asked>,
}

impl Server {
    fn start(name: Limiter, answer: Answer) -> Result<Self, Error> {
        let app = app(name, answer)?;
        let (cpu, asked) = unbounded_channel();
        let (bound, address) = mpsc::channel();
        let thread = thread::Builder::new().name(format!("{name:?}"));
        thread.spawn(move || serve(app, &bound, asked))?;
        let address: SocketAddr = address
            .recv()
            .map_err(|_| Error::new(format!("H2: the server of {name:?} did not start")))?;
        let connections = (0..CONNECTIONS).map(|_| {
            let stream = TcpStream::connect(address)?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(Duration::from_secs(10)))?;
            Ok(stream)
        });
        let connections = connections.collect::<Result<_, Error>>()?;
        Ok(Self { connections, cpu })
    }

    /// So many requests over each connection, one at a time; the last one's status.
    fn ask(&mut self, rounds: usize) -> Result<u16, Error> {
        let mut status = 0;
        for _ in 0..rounds {
            for stream in &mut self.connections {
                stream.write_all(b"GET / HTTP/1.1\r\nhost: bench\r\n\r\n")?;
            }
            for stream in &mut self.connections {
                status = read_answer(stream)?;
            }
        }
        Ok(status)
    }

    fn cpu_ns(&self) -> Result<f64, Error> {
        let (sender, answer) = mpsc::channel();
        let gone = || Error::new("H2: a server stopped".to_owned());
        self.cpu.send(sender).map_err(|_| gone())?;
        answer.recv().map_err(|_| gone())
    }
}

/// Reads one answer to its end; returns its status.
fn read_answer(stream: &mut TcpStream) -> Result<u16, Error> {
    let mut buffer = [0; LONGEST];
    let mut read = 0;
    loop {
        let room = buffer.get_mut(read..).unwrap_or_default();
        let more = stream.read(room)?;
        read += more;
        let text = std::str::from_utf8(buffer.get(..read).unwrap_or_default());
        let text = text.unwrap_or_default();
        if more == 0 {
            return Err(Error::new(format!("H2: an answer ends at {text:?}")));
        }
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            let is_length = name.eq_ignore_ascii_case("content-length");
            value.parse::<usize>().ok().filter(|_| is_length)
        });
        if length.is_some_and(|length| body.len() >= length) {
            let status = head.split(' ').nth(1);
            return Ok(status.and_then(|status| status.parse().ok()).unwrap_or(0));
        }
    }
}

/// Serves on one thread until the process ends.
fn serve(app: Router, bound: &mpsc::Sender<SocketAddr>, mut asked: UnboundedReceiver<Asked>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let Ok(runtime) = runtime else {
        return;
    };
    runtime.block_on(async move {
        let Ok(listener) = TcpListener::bind("127.0.0.1:0").await else {
            return;
        };
        let Ok(address) = listener.local_addr() else {
            return;
        };
        tokio::spawn(async move {
            while let Some(asker) = asked.recv().await {
                _ = asker.send(cpu::thread_ns());
            }
        });
        _ = bound.send(address);
        let app = app.into_make_service_with_connect_info::<SocketAddr>();
        _ = axum::serve(listener, app).await;
    });
}

/// The app: a million tokens a second, or one for the whole time.
fn app(name: Limiter, answer: Answer) -> Result<Router, Error> {
    let app = Router::new().route("/", get(|| async { "hello" }));
    let admits = answer == Answer::Admitted;
    let (nanoseconds, burst) = if admits {
        (1_000, 1_000_000)
    } else {
        (3_600_000_000_000, 1)
    };
    // Its builder's type changes with the middleware.
    macro_rules! governed {
        ($builder:expr) => {{
            let config = $builder
                .per_nanosecond(nanoseconds)
                .burst_size(burst)
                .finish();
            let config = config.ok_or_else(|| Error::new("H2: no such quota".to_owned()))?;
            app.layer(GovernorLayer::new(Arc::new(config)))
        }};
    }
    Ok(match name {
        Limiter::Tollgate => {
            let rate = Rate::new(1, Duration::from_nanos(nanoseconds));
            app.layer(RateLimitLayer::new(rate.burst(burst.into()), 100_000)?)
        }
        Limiter::TowerGovernor => governed!(GovernorConfigBuilder::default()),
        Limiter::TowerGovernorHeaders => {
            governed!(GovernorConfigBuilder::default().use_headers())
        }
        Limiter::Baseline => app,
        Limiter::Governor
        | Limiter::GovernorAhash
        | Limiter::RateNet
        | Limiter::Ratelimit
        | Limiter::Throttlecrab
        | Limiter::Limitador
        | Limiter::Textbook
        | Limiter::Sweep => return Err(Error::new(format!("H2: {name:?} is no layer"))),
    })
}
