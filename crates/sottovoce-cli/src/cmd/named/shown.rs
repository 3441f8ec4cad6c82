//! Formats contexts as text and JSON.

use anstyle::Style;
use jiff::Timestamp;
use sottovoce::Scope;
use sottovoce::persona::PersonaConversation;

use crate::cmd::traits::{persona_row, row, show_persona};
use crate::exit::{Exit, Outcome};
use crate::output::{self, BAD, BOLD, DIM, GOOD, Object, WARN, moment, object};
use crate::session::Session;

/// A context in JSON.
pub(crate) fn context_row(context: &PersonaConversation) -> Object {
    let assigned = &context.assigned_persona;
    let row = object!(
        "id": context.id, "scope": Scope::Named { id: context.id.clone() }.to_string(),
        "name": context.name, "preset": assigned.preset,
    );
    row.all_of(&persona_row(&assigned.persona)).all_of(&object!(
        "messages": context.messages, "createdAt": context.created_at,
        "updatedAt": assigned.updated_at, "lastAt": context.last_at,
        "expiresAt": context.expires_at, "extendedTo": assigned.extended_to,
        "deletedAt": assigned.deleted_at, "isActive": context.is_active(),
        "isExpired": context.is_expired, "expiresSoon": context.expires_soon,
    ))
}

/// Whether a context is open, and the style of that.
pub(crate) fn state(context: &PersonaConversation) -> (&'static str, Style) {
    match (context.is_active(), context.is_expired, context.expires_soon) {
        (false, ..) => ("deleted", DIM),
        (true, true, _) => ("expired", BAD),
        (true, false, true) => ("expires soon", WARN),
        (true, false, false) => ("active", GOOD),
    }
}

/// The style of its expiry.
pub(crate) fn urgency(context: &PersonaConversation) -> Style {
    match (context.is_expired, context.expires_soon) {
        (true, _) => BAD,
        (false, true) => WARN,
        (false, false) => Style::new(),
    }
}

/// "in 6 days", "in 23 hours", "2 days ago".
pub(crate) fn relative(at: Timestamp, now: Timestamp) -> String {
    let seconds = at.duration_since(now).as_secs();
    let away = seconds.unsigned_abs();
    // Rounded, so that a new context expires in exactly its number of days.
    let nearest = |unit: u64| (away + unit / 2) / unit;
    let (number, unit) = match away {
        0..60 => return if seconds < 0 { "just now".into() } else { "within a minute".into() },
        60..3570 => (nearest(60), "minute"),
        // The last day is counted in hours, because the user is warned in it.
        3570..171_000 => (nearest(3600), "hour"),
        _ => (nearest(86_400), "day"),
    };
    let time = output::counted(number, unit);
    if seconds < 0 { format!("{time} ago") } else { format!("in {time}") }
}

/// When it expires or expired, relative and absolute.
pub(crate) fn expiry(session: &Session, context: &PersonaConversation) -> String {
    if context.assigned_persona.persona.is_lasting() {
        return "never expires".to_owned();
    }
    let now = session.clock().now().timestamp();
    let verb = if context.is_expired { "expired" } else { "expires" };
    format!("{verb} {} ({})", relative(context.expires_at, now), moment(context.expires_at))
}

/// Shows all fields of a context.
pub(crate) fn show(session: &Session, context: &PersonaConversation) -> Outcome {
    if session.json {
        output::json(&context_row(context))?;
        return Ok(Exit::Done);
    }
    let (state, style) = state(context);
    let name = output::one_line(&context.name);
    output::line(format!("{BOLD}{name}{BOLD:#}  {style}{state}{style:#}"))?;
    row("id", &context.id)?;
    row("preset", context.assigned_persona.preset.as_deref().unwrap_or("none"))?;
    row("messages", &context.messages.to_string())?;
    row("created", &moment(context.created_at))?;
    row("last", &moment(context.last_at))?;
    if let Some(at) = context.assigned_persona.deleted_at {
        row("deleted", &moment(at))?;
    }
    row("expiry", &expiry(session, context))?;
    show_persona(&context.assigned_persona.persona)?;
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_shown_by_how_far_away_it_is() {
        let now: Timestamp = "2025-08-24T05:31:01Z".parse().unwrap();
        for (seconds, shown) in [
            (7 * 86_400, "in 7 days"),
            (2 * 86_400, "in 2 days"),
            (86_400, "in 24 hours"),
            (3600, "in 1 hour"),
            (7 * 86_400 - 1, "in 7 days"),
            (86_399, "in 24 hours"),
            (3599, "in 1 hour"),
            (100, "in 2 minutes"),
            (5, "within a minute"),
            (-5, "just now"),
            (-7200, "2 hours ago"),
            (-3 * 86_400, "3 days ago"),
        ] {
            let at = now + jiff::SignedDuration::from_secs(seconds);
            assert_eq!(relative(at, now), shown);
        }
    }
}
