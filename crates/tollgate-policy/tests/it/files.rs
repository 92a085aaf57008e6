//! The policy file: all of it, and whatever is wrong with one.

use std::time::Duration;

use tollgate::Rate;
use tollgate_policy::{Cost, Idle, MissingKey, OnError, Policy, Rule};

/// The errors of a file, one a line.
fn says(text: &str) -> String {
    Policy::from_toml(text).unwrap_err().to_string()
}

/// A limit with those lines.
fn limit(lines: &str) -> String {
    format!("[[limit]]\nname = \"a\"\nkey = \"ip\"\n{lines}\n")
}

#[test]
fn a_file_says_all_that_a_policy_can() {
    let policy = Policy::from_toml(
        r#"
        [clients]
        trusted_proxies = ["10.0.0.0/8", "unix"]
        header = "Forwarded"
        ipv6_prefix = 56

        [paths]
        ignore_case = true

        [[limit]]
        name = "per-key"
        match = { path = "/API/**", method = ["GET", "POST"] }
        except = { path = ["/api/health"] }
        key = ["header:X-Api-Key", "ip"]
        rate = "5/s"
        burst = 10
        max_clients = 5_000
        idle = "10m"
        missing_key = "refuse"
        cost = "header:x-cost"
        shadow = true

        [[limit]]
        name = "slow"
        key = []
        algorithm = "leaky-bucket"
        rate = "10/min"
        max_delay = "1500ms"
        idle = "never"
        cost = 3

        [[limit]]
        name = "daily"
        key = "cookie:sid"
        algorithm = "fixed-window"
        limit = 1000
        window = "1d"
        anchor = "aligned"
        when_full = "share"
        "#,
    )
    .unwrap();
    let [key, slow, daily] = policy.limits() else {
        panic!("{policy:?}");
    };
    assert_eq!(key.name(), "per-key");
    assert_eq!(key.rule(), Rule::TokenBucket(Rate::per_second(5).burst(10)));
    assert_eq!(key.requests().to_string(), "GET, POST /API/**");
    assert_eq!(key.left_out().unwrap().to_string(), "/api/health");
    assert_eq!(key.key().to_string(), r#"["header:x-api-key", "ip"]"#);
    assert_eq!(
        (key.max_clients(), key.missing_key()),
        (5_000, MissingKey::Refuse)
    );
    assert_eq!(key.idle(), Idle::After(Duration::from_secs(600)));
    assert_eq!(key.cost(), &Cost::Header("x-cost".to_owned()));
    assert!(key.is_shadow() && !slow.is_shadow());
    assert_eq!(
        slow.rule(),
        Rule::LeakyBucket(Rate::per_minute(10).burst(10))
    );
    assert_eq!((slow.idle(), slow.cost()), (Idle::Never, &Cost::Fixed(3)));
    assert_eq!(slow.max_delay(), Duration::from_millis(1_500));
    assert_eq!(slow.key().to_string(), "[]");
    assert_eq!((slow.max_clients(), daily.max_clients()), (1, 1_000_000));
    assert_eq!(
        daily.rule(),
        Rule::AlignedWindow(1_000, Duration::from_secs(86_400))
    );
    assert_eq!(policy.proxies().header().name(), "forwarded");
}

#[test]
fn plans_refunds_and_failures_are_read() {
    let policy = Policy::from_toml(&limit(
        r#"rate = "5/s"
        refund_status = ["2xx", "404"]
        on_error = "deny"
        plan_by = "descriptor:plan"
        plan = [
            { name = "pro", rate = "50/s", burst = 100 },
            { name = "internal", unlimited = true },
        ]"#,
    ))
    .unwrap();
    let a = &policy.limits()[0];
    assert_eq!(a.on_error(), OnError::Deny);
    assert_eq!(a.refund_status().to_string(), "2xx, 404");
    assert_eq!(a.plans().by().unwrap().to_string(), "descriptor:plan");
    let pro = Rule::TokenBucket(Rate::per_second(50).burst(100));
    let rules: Vec<_> = [None, Some(0), Some(1), Some(2)]
        .into_iter()
        .map(|plan| a.rule_of(plan))
        .collect();
    assert_eq!(rules, [Some(a.rule()), Some(pro), None, Some(a.rule())]);

    let window = limit(
        "algorithm = \"fixed-window\"\nlimit = 5\nwindow = \"1h\"\nanchor = \"aligned\"\n\
         plan_by = \"header:x-plan\"\nplan = [{ name = \"pro\", limit = 9, window = \"1m\" }]",
    );
    let policy = Policy::from_toml(&window).unwrap();
    let aligned = Rule::AlignedWindow(9, Duration::from_secs(60));
    assert_eq!(policy.limits()[0].rule_of(Some(0)), Some(aligned));
}

#[test]
fn wrong_plans_refunds_and_failures_are_told() {
    let with = |lines: &str| says(&limit(&format!("rate = \"5/s\"\n{lines}")));
    for (lines, problem) in [
        (
            "plan_by = \"ip\"\nplan = [{ name = \"a\", rate = \"5/s\" }]",
            "5:11: plan_by is \"ip\": a plan is told by \"header:NAME\" or \"descriptor:NAME\"",
        ),
        (
            "plan = [{ name = \"a\", rate = \"5/s\" }]",
            "5:9: plans need plan_by, as in plan_by = \"descriptor:plan\"",
        ),
        (
            "plan_by = \"header:x-plan\"",
            "5:11: plan_by says of which plan a client is, and there are none",
        ),
        (
            "plan_by = \"header:x\"\nplan = [{ name = \"a\", unlimited = true, rate = \"1/s\" }]",
            "6:48: an unlimited plan has no rate",
        ),
        (
            "plan_by = \"header:x\"\nplan = [{ name = \"a\" }]",
            "6:9: a plan needs a rate, as in rate = \"5/s\"",
        ),
        (
            "plan_by = \"header:x\"\nplan = [{ name = \"a\", limit = 5, rate = \"1/s\" }]",
            "6:31: a bucket has rate and burst, and no limit",
        ),
        (
            "plan_by = \"header:x\"\nplan = [{ name = \"a b\", rate = \"1/s\" }]",
            "6:9: a plan's name is 1 to 64 letters, digits and such as \"-\"",
        ),
        (
            "plan_by = \"header:x\"\n\
             plan = [{ name = \"a\", rate = \"1/s\" }, { name = \"a\", rate = \"2/s\" }]",
            "6:9: two plans are called \"a\"",
        ),
        (
            "cost = 5\nplan_by = \"header:x\"\nplan = [{ name = \"a\", rate = \"1/s\" }]",
            "7:9: cost is 5; no call of this plan can take more than 1",
        ),
        (
            "refund_status = [\"2xx\", \"1xx\"]",
            "5:25: \"1xx\": a status is \"200\" to \"599\", or a class: \"2xx\"",
        ),
        (
            "on_error = \"local\"",
            "5:12: on_error is \"local\"; it is \"allow\" or \"deny\"",
        ),
    ] {
        assert_eq!(with(lines), problem, "{lines}");
    }
}

/// inngest/inngest#1459, spring-cloud/spring-cloud-gateway#87, emqx/emqx#8167: a small limit is not
/// rounded away.
#[test]
fn b102_an_absent_burst_is_the_rates_tokens() {
    for (rate, burst) in [
        ("5/day", 5),
        ("1/10s", 1),
        ("5/s", 5),
        ("0.5/s", 1),
        ("100/min", 100),
    ] {
        let policy = Policy::from_toml(&limit(&format!("rate = \"{rate}\""))).unwrap();
        assert_eq!(policy.limits()[0].rule().burst(), burst, "{rate}");
    }
}

/// AaronErhardt/actix-governor#49, benwis/tower-governor#55, traefik/traefik#8330.
#[test]
fn b88_a_rate_is_tokens_per_period() {
    let policy = Policy::from_toml(&limit("rate = \"500/ms\"\nburst = 500")).unwrap();
    let quota = Rate::new(500, Duration::from_millis(1)).burst(500);
    assert_eq!(policy.limits()[0].rule(), Rule::TokenBucket(quota));
}

/// lance-format/lance#7942, brandur/redis-cell#42, golang/go#39984, golang/go#47221,
/// vulcand/oxy#213, ccfos/huatuo#795, animir/node-rate-limiter-flexible#47: impossible numbers are
/// refused where they are read, by name.
#[test]
fn b13_impossible_numbers_are_refused() {
    for (lines, problem) in [
        (
            "rate = nan",
            "4:8: rate is nan; it is tokens per period, as in \"5/s\" or \"100/min\"",
        ),
        (
            "rate = -inf",
            "4:8: rate is -inf; it is tokens per period, as in \"5/s\" or \"100/min\"",
        ),
        (
            "rate = 5",
            "4:8: rate is 5; it is tokens per period, as in \"5/s\" or \"100/min\"",
        ),
        (
            "rate = \"5/s\"\nburst = 0",
            "5:9: burst is 0; the least is 1 token",
        ),
        (
            "rate = \"5/s\"\nburst = -1",
            "5:9: burst is -1; it is a number of tokens, from 1",
        ),
        (
            "rate = \"5/s\"\nburst = 1.5",
            "5:9: burst is 1.5; it is a number of tokens, from 1",
        ),
        (
            "rate = \"5/s\"\nburst = 99999999999999999999",
            "5:9: burst is 99999999999999999999; it is a number of tokens, from 1",
        ),
        (
            "rate = \"5/s\"\ncost = 0",
            "5:8: cost is a whole number from 1, or a header, as in \"header:x-cost\"",
        ),
        (
            "rate = \"5/s\"\nmax_clients = 0",
            "5:15: max_clients is 1 to 1099511627775",
        ),
        (
            "rate = \"5/s\"\nidle = \"0s\"",
            "5:8: idle is \"0s\"; it is a length of time above 0, as in \"10m\", or \"never\"",
        ),
        (
            "rate = \"5/s\"\nidle = \"-1s\"",
            "5:8: idle is \"-1s\"; it is a length of time above 0, as in \"10m\", or \"never\"",
        ),
        (
            "algorithm = \"sliding-log\"\nlimit = 0\nwindow = \"1m\"",
            "5:9: limit is 0; the least is 1 token a window",
        ),
        (
            "algorithm = \"sliding-log\"\nlimit = 5\nwindow = \"0s\"",
            "6:10: window is 0; the least is 1 ns",
        ),
        (
            "algorithm = \"sliding-log\"\nlimit = 70000\nwindow = \"1m\"",
            "5:9: limit is 70000; a sliding log holds at most 65536 tokens a window",
        ),
    ] {
        assert_eq!(says(&limit(lines)), problem, "{lines}");
    }
    for rate in [
        "nan/s", "inf/s", "-1/s", "-0.0/s", "0/s", "1e-320/s", "1e400/s", "5/0s", "5/-1s",
        "5/0.5ns",
    ] {
        let problem = says(&limit(&format!("rate = \"{rate}\"")));
        assert!(problem.starts_with("4:8: rate"), "{problem}");
        assert_eq!(problem.lines().count(), 1, "{problem}");
    }
}

#[test]
fn what_was_meant_is_told() {
    for (file, problem) in [
        (
            limit("rate = \"5/s\"\nbrust = 10"),
            "5:1: unknown field \"brust\"; did you mean \"burst\"?",
        ),
        (
            limit("rates = \"5/s\""),
            "1:1: a limit needs a rate, as in rate = \"5/s\"\n4:1: unknown field \"rates\"; did \
             you mean \"rate\"?",
        ),
        (
            "[[limits]]\nname = \"a\"".to_owned(),
            "1:1: no limit is here; each begins with [[limit]]\n1:3: unknown field \"limits\"; did \
             you mean \"limit\"?",
        ),
        (
            limit("rate = \"5/s\"\nalgorithm = \"tokenbucket\""),
            "5:13: algorithm is \"tokenbucket\"; it is \"token-bucket\" or \"leaky-bucket\" or \
             \"fixed-window\" or \"sliding-log\" or \"sliding-window-counter\"; did you mean \
             \"token-bucket\"?",
        ),
        (
            limit("algorithm = \"fixed-windw\"\nlimit = 5\nwindow = \"1d\""),
            "4:13: algorithm is \"fixed-windw\"; it is \"token-bucket\" or \"leaky-bucket\" or \
             \"fixed-window\" or \"sliding-log\" or \"sliding-window-counter\"; did you mean \
             \"fixed-window\"?",
        ),
        (
            limit("rate = \"5/s\"\nburst = 10\ncost = 11"),
            "6:8: cost is 11; no call can take more than 10",
        ),
        (
            limit("rate = \"5/s\"\nexcept = {}"),
            "5:10: no path and no method is named here; every request would be meant",
        ),
        (
            limit("rate = \"5/s\"\nmatch = { path = [] }"),
            "5:9: no path and no method is named here; every request would be meant",
        ),
        (
            limit("rate = \"5/s\"\nmissing_key = \"allow\""),
            "5:15: missing_key is \"allow\"; it is \"share\" or \"refuse\" or \"pass\"",
        ),
        (
            limit("rate = \"5/s\"\nshadow = 1"),
            "5:10: shadow is 1; it is true or false",
        ),
        (
            limit("rate = \"5/s\"\nlimit = 5"),
            "5:9: a bucket has rate and burst, and no limit",
        ),
        (
            limit("algorithm = \"fixed-window\"\nlimit = 5\nwindow = \"1m\"\nburst = 9"),
            "7:9: a window has limit and window, and no burst",
        ),
        (
            limit("algorithm = \"fixed-window\"\nlimit = 5"),
            "1:1: a window needs limit and window, as in limit = 100, window = \"1m\"",
        ),
        (
            limit("rate = \"5/s\"\nanchor = \"aligned\""),
            "5:10: anchor goes with a fixed-window",
        ),
        (
            limit("rate = \"5/s\"\nmax_delay = \"1s\""),
            "5:13: max_delay goes with a leaky-bucket; this is a token-bucket",
        ),
        (
            limit("rate = \"5/s\"\nidle = \"1m\"\nwhen_full = \"forget-settled\""),
            "5:8: idle does not go with when_full = \"forget-settled\", which says when",
        ),
        (
            limit("rate = \"5/s\"\nmatch = { path = \"api\" }"),
            "5:18: \"api\": a path pattern begins with a slash, as in \"/api/**\"",
        ),
        (
            limit("rate = \"5/s\"\nmatch = { paths = \"/\" }"),
            "5:11: unknown field \"paths\"; did you mean \"path\"?",
        ),
        (
            limit("rate = \"5/s\"\nmatch = { method = \"G T\" }"),
            "5:20: \"G T\" is no method",
        ),
        (
            "[[limit]]\nname = \"a\"\nrate = \"5/s\"".to_owned(),
            "1:1: a limit needs a key, as in key = [\"ip\"]; key = [] is one bucket for all",
        ),
        (
            "[[limit]]\nkey = \"ip\"\nrate = \"5/s\"".to_owned(),
            "1:1: a limit needs a name",
        ),
        (
            "[[limit]]\nname = \"a b\"\nkey = \"ip\"\nrate = \"5/s\"".to_owned(),
            "2:8: a limit's name is 1 to 64 letters, digits, \"_\", \".\" or \"-\"",
        ),
        (
            "[[limit]]\nname = \"a\"\nkey = [\"ip\", \"cookie\"]\nrate = \"5/s\"".to_owned(),
            "3:14: \"cookie\": a name is missing, as in \"header:x-api-key\"",
        ),
        (
            format!("{0}{0}", limit("rate = \"5/s\"")),
            "6:8: two limits are called \"a\"",
        ),
        (
            format!(
                "[clients]\ntrusted_proxies = [\"10.0.0.1/8\"]\n{}",
                limit("rate = \"5/s\"")
            ),
            "2:20: \"10.0.0.1/8\" is not a network: did you mean 10.0.0.0/8?",
        ),
        (
            format!("[clients]\nhops = 0\n{}", limit("rate = \"5/s\"")),
            "2:8: hops is 1 to 64",
        ),
        (
            format!("[clients]\nipv6_prefix = 129\n{}", limit("rate = \"5/s\"")),
            "2:15: the IPv6 prefix is 129; it has 1 to 128 bits",
        ),
        (
            String::new(),
            "1:1: no limit is here; each begins with [[limit]]",
        ),
    ] {
        assert_eq!(says(&file), problem, "{file}");
    }
}

/// As many errors as may be are told in as little time as one: each costs a look at the file.
#[test]
fn a_file_of_nothing_but_errors_is_soon_given_up() {
    let file: String = (0..60_000).map(|n| format!("k{n:06} = 1\n")).collect();
    assert_eq!(says(&file).lines().count(), 20);
    assert_eq!(says(&"[[limit]]\n".repeat(60_000)).lines().count(), 20);
}

/// All at once, in the order of the file, as far as they can be told apart.
#[test]
fn all_errors_are_told() {
    let file =
        "[[limit]]\nname = \"a\"\nkey = \"ipp\"\nrate = \"5\"\nburts = 1\n\n[[limit]]\nname = 5\n";
    let problems = says(file);
    let lines: Vec<&str> = problems
        .lines()
        .map(|line| line.split(": ").next().unwrap())
        .collect();
    assert_eq!(
        lines,
        ["3:7", "4:8", "5:1", "7:1", "7:1", "8:8"],
        "{problems}"
    );
    // And no more than 20.
    let file = "[[limit]]\n".repeat(30);
    assert_eq!(says(&file).lines().count(), 20);
}

#[test]
fn what_is_no_toml_is_told_by_place() {
    assert!(says("[[limit]]\nname = \"a").starts_with("2:"));
    assert!(says("a = 1\na = 2\n").starts_with("2:1: "));
    let large = format!("# {}", "x".repeat(1 << 20));
    assert_eq!(
        says(&large),
        "1:1: the file has 1048578 bytes; 1048576 are the most"
    );
    // Nested as deep as it gets.
    let deep = format!("a = {}", "[".repeat(100_000));
    assert!(says(&deep).starts_with("1:"));
}
