//! One limit of a policy file.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

use super::fields::{self, At, Fields};
use super::rule::RuleFields;
use super::{Errors, each};
use crate::key::{Key, Part, is_of_token};
use crate::limit::{
    Cost, Idle, Limit, MAX_CLIENTS, MAX_DELAY, MOST_CLIENTS, MissingKey, OnError, Requests,
    WhenFull,
};
use crate::pattern::Pattern;
use crate::plan::{Plan, PlanBy, PlanError, Plans};
use crate::rule::Rule;
use crate::statuses::Statuses;

fn requests((place, table): &At<&DeTable<'_>>, errors: &mut Errors<'_>) -> Option<Requests> {
    let mut fields = Fields::new(table, errors);
    let paths = fields.texts("path", "a path or a list of them, as in \"/api/**\"");
    let methods = fields.texts("method", "a method or a list of them, as in \"GET\"");
    fields.finish();
    type Texts<'t> = Option<Vec<At<&'t str>>>;
    let is_empty = |list: &Texts<'_>| list.as_ref().is_some_and(Vec::is_empty);
    let names = |list: &Texts<'_>| list.as_ref().is_some_and(|list| !list.is_empty());
    let names_none = table.is_empty() || is_empty(&paths) || is_empty(&methods);
    if names_none && !names(&paths) && !names(&methods) {
        errors.add(
            place,
            "no path and no method is named here; every request would be meant",
        );
        return None;
    }
    let at = paths.as_ref().and_then(|paths| paths.first());
    let at = at.map_or(0..0, |(at, _)| at.clone());
    let paths = each(errors, paths.unwrap_or_default(), |text| {
        let pattern = text.parse::<Pattern>();
        pattern.map_err(|error| format!("{text:?}: {error}"))
    });
    let methods = each(errors, methods.unwrap_or_default(), |text| {
        let is_method = !text.is_empty() && text.bytes().all(is_of_token);
        is_method
            .then_some(text)
            .ok_or(format!("{text:?} is no method"))
    });
    let requests = Requests::all().methods(methods?);
    errors.take(&at, requests.paths(paths?))
}

pub(super) fn limit(
    at: &Range<usize>,
    table: &DeTable<'_>,
    errors: &mut Errors<'_>,
) -> Option<Limit> {
    let mut fields = Fields::new(table, errors);
    let name = fields.text("name", "what the limit is called");
    let key = fields.texts(
        "key",
        "a part or a list of parts, as in [\"ip\"]; [] is one bucket for all",
    );
    fields.need("name", at, "a limit needs a name");
    fields.need(
        "key",
        at,
        "a limit needs a key, as in key = [\"ip\"]; key = [] is one bucket for all",
    );
    let rule = RuleFields::read(&mut fields, at);
    let matched = fields.table("match");
    let except = fields.table("except");
    let max_clients = fields.whole("max_clients", "a number of clients, from 1");
    let idle = fields.text("idle", "a length of time or \"never\"");
    let when_full = fields.choice("when_full", &WHEN_FULL);
    let missing_key = fields.choice("missing_key", &MISSING_KEY);
    let cost = fields.get("cost");
    let is_shadow = fields.boolean("shadow");
    let max_delay = fields.duration("max_delay");
    let refund_status = fields.texts("refund_status", "a status or a list, as in [\"2xx\"]");
    let on_error = fields.choice("on_error", &ON_ERROR);
    let plan_by = fields.text("plan_by", "as in \"descriptor:plan\" or \"header:x-plan\"");
    let plans = fields.tables("plan");
    fields.finish();

    let rule = rule.and_then(|rule| rule.rule(errors));
    let key = key.and_then(|parts| key_of(parts, at, errors));
    let matched = matched.map_or(Some(Requests::all()), |table| requests(&table, errors));
    let except = except.map_or(Some(None), |table| requests(&table, errors).map(Some));
    let idle = idle_of(idle, when_full.as_ref().map(|(_, when)| *when), errors);
    let cost = cost_of(cost, rule, errors);
    let clients = max_clients.map_or(Some(MAX_CLIENTS), |(at, clients)| {
        let clients = (1..=MOST_CLIENTS).contains(&clients).then_some(clients);
        let clients = clients.and_then(|clients| usize::try_from(clients).ok());
        let problem = || format!("max_clients is 1 to {MOST_CLIENTS}");
        errors.take(&at, clients.ok_or_else(problem))
    });
    if let (Some((at, _)), Some(rule)) = (&max_delay, rule)
        && !matches!(rule, Rule::LeakyBucket(_))
    {
        let algorithm = rule.algorithm();
        errors.add(
            at,
            format!("max_delay goes with a leaky-bucket; this is a {algorithm}"),
        );
    }
    let refund_status = statuses(refund_status.unwrap_or_default(), errors);
    let plans = rule.and_then(|rule| plans_of(plan_by, plans, rule, cost.as_ref(), errors));
    let (name_at, name) = name?;
    let mut limit = errors
        .take(&name_at, Limit::new(name, rule?))?
        .for_requests(matched?)
        .with_key(key?)
        .with_max_clients(clients?)
        .with_idle(idle?)
        .with_cost(cost?)
        .with_shadow(is_shadow.unwrap_or(false))
        .with_when_full(when_full.map_or_else(WhenFull::default, |(_, when)| when))
        .with_missing_key(missing_key.map_or_else(MissingKey::default, |(_, missing)| missing))
        .with_max_delay(max_delay.map_or(MAX_DELAY, |(_, delay)| delay))
        .with_refund_status(refund_status?)
        .with_on_error(on_error.map_or_else(OnError::default, |(_, on_error)| on_error));
    limit = errors.take(at, limit.with_plans(plans?))?;
    if let Some(except) = except? {
        limit = limit.except(except);
    }
    Some(limit)
}

const WHEN_FULL: [(&str, WhenFull); 3] = [
    ("refuse", WhenFull::Refuse),
    ("forget-settled", WhenFull::ForgetSettled),
    ("share", WhenFull::Share),
];

const MISSING_KEY: [(&str, MissingKey); 3] = [
    ("share", MissingKey::Share),
    ("refuse", MissingKey::Refuse),
    ("pass", MissingKey::Pass),
];

const ON_ERROR: [(&str, OnError); 2] = [("allow", OnError::Allow), ("deny", OnError::Deny)];

fn statuses(texts: Vec<At<&str>>, errors: &mut Errors<'_>) -> Option<Statuses> {
    let Some((first, _)) = texts.first().cloned() else {
        return Some(Statuses::none());
    };
    let read = each(errors, texts, |text| {
        let one = Statuses::of([text]).map(|_| text);
        one.map_err(|error| format!("{text:?}: {error}"))
    })?;
    errors.take(&first, Statuses::of(read))
}

/// The plans of a limit that holds everybody else to `rule`.
fn plans_of(
    by: Option<At<&str>>,
    tables: Vec<At<&DeTable<'_>>>,
    rule: Rule,
    cost: Option<&Cost>,
    errors: &mut Errors<'_>,
) -> Option<Plans> {
    let by = match (by, tables.first()) {
        (None, None) => return Some(Plans::default()),
        (Some((at, text)), Some(_)) => {
            let by = match text.parse() {
                Ok(Part::Header(name)) => Some(PlanBy::Header(name)),
                Ok(Part::Descriptor(name)) => Some(PlanBy::Descriptor(name)),
                Ok(_) | Err(_) => None,
            };
            let problem = format!("plan_by is {text:?}: {}", PlanError::Chooser);
            errors.take(&at, by.ok_or(problem))
        }
        (Some((at, _)), None) => {
            errors.add(
                &at,
                "plan_by says of which plan a client is, and there are none",
            );
            None
        }
        (None, Some((at, _))) => {
            let problem = "plans need plan_by, as in plan_by = \"descriptor:plan\"";
            errors.add(at, problem);
            None
        }
    };
    let first = tables.first().map_or(0..0, |(at, _)| at.clone());
    let mut plans = Vec::new();
    for (at, table) in tables {
        if errors.are_enough() {
            return None;
        }
        plans.push(plan(&at, table, rule, cost, errors));
    }
    let plans: Vec<Plan> = plans.into_iter().collect::<Option<_>>()?;
    errors.take(&first, Plans::new(by?, plans))
}

fn plan(
    at: &Range<usize>,
    table: &DeTable<'_>,
    rule: Rule,
    cost: Option<&Cost>,
    errors: &mut Errors<'_>,
) -> Option<Plan> {
    let mut fields = Fields::new(table, errors);
    let name = fields.text("name", "what the plan is called");
    fields.need("name", at, "a plan needs a name");
    let unlimited = fields.boolean("unlimited").unwrap_or(false);
    if unlimited {
        for other in ["rate", "burst", "limit", "window"] {
            _ = fields.get(other);
            fields.refuse(other, &format!("an unlimited plan has no {other}"));
        }
        fields.finish();
        return name.map(|(_, name)| Plan::unlimited(name));
    }
    let numbers = RuleFields::read_plan(&mut fields, at, rule);
    fields.finish();
    let rule = numbers?.rule(errors)?;
    if let Some(Cost::Fixed(tokens)) = cost
        && *tokens > rule.burst()
    {
        let burst = rule.burst();
        errors.add(
            at,
            format!("cost is {tokens}; no call of this plan can take more than {burst}"),
        );
    }
    name.map(|(_, name)| Plan::of(name, rule))
}

fn key_of(parts: Vec<At<&str>>, at: &Range<usize>, errors: &mut Errors<'_>) -> Option<Key> {
    let at = parts
        .first()
        .map_or_else(|| at.clone(), |(at, _)| at.clone());
    let parts = each(errors, parts, |text| {
        let part = text.parse::<Part>();
        part.map_err(|error| format!("{text:?}: {error}"))
    })?;
    errors.take(&at, Key::of_parts(parts))
}

fn idle_of(
    idle: Option<At<&str>>,
    when_full: Option<WhenFull>,
    errors: &mut Errors<'_>,
) -> Option<Idle> {
    let Some((at, text)) = idle else {
        return Some(Idle::Full);
    };
    if when_full == Some(WhenFull::ForgetSettled) {
        errors.add(
            &at,
            "idle does not go with when_full = \"forget-settled\", which says when",
        );
        return None;
    }
    let idle = match text {
        "never" => Some(Idle::Never),
        _ => fields::duration(text)
            .filter(|idle| !idle.is_zero())
            .map(Idle::After),
    };
    let wrong =
        || format!("idle is {text:?}; it is a length of time above 0, as in \"10m\", or \"never\"");
    errors.take(&at, idle.ok_or_else(wrong))
}

fn cost_of(
    cost: Option<At<&DeValue<'_>>>,
    rule: Option<Rule>,
    errors: &mut Errors<'_>,
) -> Option<Cost> {
    let Some((at, value)) = cost else {
        return Some(Cost::default());
    };
    let header = value.as_str().and_then(|text| text.strip_prefix("header:"));
    match (fields::whole(value), header) {
        (Some(tokens), _) if tokens > 0 => {
            if let Some(burst) = rule.map(Rule::burst).filter(|burst| tokens > *burst) {
                let problem = format!("cost is {tokens}; no call can take more than {burst}");
                errors.add(&at, problem);
                return None;
            }
            return Some(Cost::Fixed(tokens));
        }
        (_, Some(name)) => {
            let name = name.to_ascii_lowercase();
            return errors
                .take(&at, format!("header:{name}").parse::<Part>())
                .map(|_| Cost::Header(name));
        }
        _ => {}
    }
    errors.add(
        &at,
        "cost is a whole number from 1, or a header, as in \"header:x-cost\"",
    );
    None
}
