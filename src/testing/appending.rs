//! The contract of appending and reading.

use super::*;
use crate::message::ToolCall;
use jiff::SignedDuration;

pub(super) async fn an_empty_store_reads_as_empty<F>(at: Fixture<'_, F>) -> Rule
where
    F: AsyncFn(StoreSetup) -> Result<Arc<dyn ConversationStore>>,
{
    let store = at.open().await?;
    holds!(texts(store.read_tail(10).await)?.is_empty());
    holds!(texts(store.read_seqs(1..=u64::MAX).await)?.is_empty());
    holds!(store.forget(&[1..=5]).await?.removed.is_empty());
    same!(store.append_message(said("first")).await?.seq, 1);
    Ok(())
}

pub(super) async fn messages_come_back_in_order_under_contiguous_numbers<F>(
    at: Fixture<'_, F>,
) -> Rule
where
    F: AsyncFn(StoreSetup) -> Result<Arc<dyn ConversationStore>>,
{
    for n in 1..=5 {
        // A new store each time: numbers continue where the last one stopped.
        let stored = at.open().await?.append_message(said(n)).await?;
        same!((stored.seq, stored.message.content.clone()), (n, n.to_string()));
    }
    let store = at.open().await?;
    for (n, expected) in [(0, &[][..]), (1, &["5"]), (3, &["3", "4", "5"])] {
        same!(texts(store.read_tail(n).await)?, expected);
    }
    let all = store.read_tail(usize::MAX).await?;
    same!(seqs(Ok(all.clone()))?, [1, 2, 3, 4, 5]);
    holds!(all.messages.iter().all(|stored| stored.scope == *store.scope()));
    same!(all.last_seq, 5);
    Ok(())
}

pub(super) async fn a_long_tail_is_whole<F>(at: Fixture<'_, F>) -> Rule
where
    F: AsyncFn(StoreSetup) -> Result<Arc<dyn ConversationStore>>,
{
    let store = at.open().await?;
    store.append_all(numbered(1..=300)).await?;
    store.append_message(said(301)).await?;
    for n in [1, 127, 128, 129, 200, 301, 1000] {
        let wanted = u64::try_from(n).unwrap_or(301).min(301);
        same!(seqs(store.read_tail(n).await)?, (302 - wanted..=301).collect::<Vec<_>>());
    }
    Ok(())
}

pub(super) async fn a_batch_is_kept_in_its_order<F>(at: Fixture<'_, F>) -> Rule
where
    F: AsyncFn(StoreSetup) -> Result<Arc<dyn ConversationStore>>,
{
    let store = at.open().await?;
    holds!(store.append_all(Vec::new()).await?.is_empty());
    store.append_message(said(1)).await?;
    let stored = store.append_all(numbered(2..=4)).await?;
    same!(stored.iter().map(|stored| stored.seq).collect::<Vec<_>>(), [2, 3, 4]);
    same!(texts(store.read_tail(9).await)?, ["1", "2", "3", "4"]);
    same!(texts(at.open().await?.read_tail(9).await)?, ["1", "2", "3", "4"]);
    Ok(())
}

pub(super) async fn a_refused_message_refuses_its_batch<F>(at: Fixture<'_, F>) -> Rule
where
    F: AsyncFn(StoreSetup) -> Result<Arc<dyn ConversationStore>>,
{
    let store = at.open().await?;
    let mut batch = numbered(1..=3);
    batch.push(said_at("from the future", "2025-08-27T00:00:00Z"));
    refused!(store.append_all(batch).await, Error::FromTheFuture);
    holds!(texts(store.read_tail(9).await)?.is_empty());
    Ok(())
}

pub(super) async fn ranges_give_what_lies_in_them<F>(at: Fixture<'_, F>) -> Rule
where
    F: AsyncFn(StoreSetup) -> Result<Arc<dyn ConversationStore>>,
{
    let store = at.open().await?;
    for clock in ["10:00:00.000", "10:00:00.001", "10:00:00.002", "10:00:01.999"] {
        store.append_message(said_at(clock, &format!("2025-08-24T{clock}Z"))).await?;
    }
    for (range, expected) in
        [(1..=1, &[1][..]), (2..=3, &[2, 3]), (4..=99, &[4]), (5..=9, &[]), (0..=1, &[1])]
    {
        same!(seqs(store.read_seqs(range).await)?, expected);
    }
    #[expect(clippy::reversed_empty_ranges, reason = "an empty range is a valid question")]
    let backwards = 3..=2;
    holds!(seqs(store.read_seqs(backwards).await)?.is_empty());
    for (from, to, expected) in [
        ("10:00:00.000", "10:00:00.001", &[1][..]),
        ("10:00:00.001", "10:00:02.000", &[2, 3, 4]),
        ("10:00:00.003", "10:00:01.999", &[]),
        ("10:00:01.999", "10:00:01.999", &[]),
        ("10:00:00.000", "10:00:02.000", &[1, 2, 3, 4]),
    ] {
        let moment = |clock| time(&format!("2025-08-24T{clock}Z"));
        same!(seqs(store.read_times(moment(from)..moment(to)).await)?, expected);
    }
    same!(seqs(store.read_times(Timestamp::MIN..Timestamp::MAX).await)?, [1, 2, 3, 4]);
    Ok(())
}

pub(super) async fn a_message_at_the_size_limit_is_kept<F>(at: Fixture<'_, F>) -> Rule
where
    F: AsyncFn(StoreSetup) -> Result<Arc<dyn ConversationStore>>,
{
    let words = "x".repeat(1000);
    let size = serde_json::to_vec(&said(&words)).map_or(0, |json| json.len());
    let store = at.open_with(StorePolicy::default().max_message_bytes(size)).await?;
    refused!(store.append_message(said(format!("{words}x"))).await, Error::TooLarge { .. });
    // A quotation mark takes two bytes in JSON, which is what the limit counts.
    let quoted = words.replacen('x', "\"", 1);
    refused!(store.append_message(said(quoted)).await, Error::TooLarge { .. });
    same!(store.append_message(said(&words)).await?.seq, 1);
    same!(texts(at.open().await?.read_tail(9).await)?, [words]);
    Ok(())
}

pub(super) async fn a_message_far_ahead_of_the_clock_is_refused<F>(at: Fixture<'_, F>) -> Rule
where
    F: AsyncFn(StoreSetup) -> Result<Arc<dyn ConversationStore>>,
{
    let store = at.open().await?;
    let mut message = said("tomorrow");
    message.timestamp = time("2025-08-25T16:36:25.123Z");
    store.append_message(message.clone()).await?;
    message.timestamp += SignedDuration::from_nanos(1);
    refused!(store.append_message(message).await, Error::FromTheFuture);
    same!(seqs(store.read_tail(9).await)?, [1]);
    Ok(())
}

pub(super) async fn a_wrong_clock_keeps_the_order<F>(at: Fixture<'_, F>) -> Rule
where
    F: AsyncFn(StoreSetup) -> Result<Arc<dyn ConversationStore>>,
{
    let store = at.open().await?;
    store.append_all(numbered(1..=2)).await?;
    for (n, wrong) in [(3, "1970-01-01T00:00:00Z"), (4, "9999-12-30T21:59:59.999Z")] {
        at.set_clock(wrong);
        let off = store.append_message(said_at(n, wrong)).await?;
        same!(off.message.timestamp, time(wrong));
    }
    // The clock is corrected, and the program restarts in between.
    at.set_clock("2025-08-24T16:40:00Z");
    let store = at.open().await?;
    store.append_message(said_at(5, "2025-08-24T16:40:00Z")).await?;
    for store in [store, at.open().await?] {
        same!(texts(store.read_tail(2).await)?, ["4", "5"]);
        let all = store.read_tail(9).await?;
        same!(texts(Ok(all.clone()))?, ["1", "2", "3", "4", "5"]);
        holds!(all.messages.is_sorted_by_key(|stored| (stored.ordered_at(), stored.seq)));
    }
    Ok(())
}

pub(super) async fn a_time_before_the_year_0_is_refused<F>(at: Fixture<'_, F>) -> Rule
where
    F: AsyncFn(StoreSetup) -> Result<Arc<dyn ConversationStore>>,
{
    let store = at.open().await?;
    let mut message = said("words");
    message.timestamp = Timestamp::MIN;
    refused!(store.append_message(message.clone()).await, Error::InvalidMessage { .. });
    at.clock.set(Timestamp::MAX.to_zoned(jiff::tz::TimeZone::UTC));
    message.timestamp = Timestamp::MAX;
    store.append_all(vec![message.clone(), message]).await?;
    store.append_message(said("later")).await?;
    same!(texts(at.open().await?.read_tail(9).await)?, ["words", "words", "later"]);
    Ok(())
}

pub(super) async fn difficult_text_comes_back_exactly<F>(at: Fixture<'_, F>) -> Rule
where
    F: AsyncFn(StoreSetup) -> Result<Arc<dyn ConversationStore>>,
{
    let store = at.open().await?;
    let mut messages = Vec::new();
    for (text, role) in [
        "",
        "\0\u{1}\u{1f}\u{7f}\u{85}",
        "\u{202e}right to left\u{202c} \u{200f}שלום عالم",
        "👩‍👩‍👧‍👦🏳️‍🌈 e\u{301} é \u{1f1e6}\u{1f1f9}",
        "\"quoted\" \\ \n\r\t \u{2028}\u{2029} </script>",
        "\u{feff}mark \u{fffd} \u{10ffff} \u{e000}",
        " trailing and leading ",
    ]
    .into_iter()
    .zip(ChatRole::ALL.into_iter().cycle())
    {
        let mut message = said(text).with_metadata(text, text);
        message.role = role;
        message.timestamp = time("2025-08-24T16:36:25.123456789Z");
        message.thread_id = Some(text.into());
        message.tool_call_id = Some(text.into());
        message.offset_minutes = Some(-210);
        message.tool_calls = vec![ToolCall {
            id: text.into(),
            name: text.into(),
            arguments: serde_json::json!({ text: [text, null, 1.5, -3, u64::MAX] }),
        }];
        store.append_message(message.clone()).await?;
        messages.push(message);
    }
    for store in [store, at.open().await?] {
        let result = complete(store.read_tail(99).await?)?;
        let found: Vec<_> = result.messages.iter().map(|m| m.message.clone()).collect();
        holds!(found == messages);
    }
    Ok(())
}

pub(super) async fn two_stores_see_each_others_changes<F>(at: Fixture<'_, F>) -> Rule
where
    F: AsyncFn(StoreSetup) -> Result<Arc<dyn ConversationStore>>,
{
    let (one, other) = (at.open().await?, at.open().await?);
    for n in 1..=6 {
        let (writes, reads) = if n % 2 == 0 { (&one, &other) } else { (&other, &one) };
        same!(writes.append_message(said("words")).await?.seq, n);
        same!(seqs(reads.read_tail(1).await)?, [n]);
    }
    one.forget(&[2..=6]).await?;
    same!(seqs(other.read_tail(9).await)?, [1]);
    let next = other.append_message(said("words")).await?.seq;
    holds!(next > 6);
    same!(seqs(one.read_tail(9).await)?, [1, next]);
    Ok(())
}

pub(super) async fn scopes_share_nothing<F>(at: Fixture<'_, F>) -> Rule
where
    F: AsyncFn(StoreSetup) -> Result<Arc<dyn ConversationStore>>,
{
    let scopes = [
        Scope::Dm { user: "bob".into() },
        Scope::Dm { user: "Bob".into() },
        Scope::Named { id: "bob".into() },
        Scope::Guild { guild: "g".into(), channel: "c".into(), user: "bob".into() },
        Scope::Default,
    ];
    for round in 1..=2 {
        for scope in &scopes {
            let store = (at.open)(StoreSetup { scope: scope.clone(), ..at.setup.clone() }).await?;
            same!(**store.scope(), *scope);
            same!(store.append_message(said(format!("{scope:?}"))).await?.seq, round);
            let words = texts(store.read_tail(9).await)?;
            holds!(words.iter().all(|words| *words == format!("{scope:?}")));
        }
    }
    Ok(())
}

pub(super) async fn concurrent_appends_are_all_kept<F>(at: Fixture<'_, F>) -> Rule
where
    F: AsyncFn(StoreSetup) -> Result<Arc<dyn ConversationStore>>,
{
    let mut writers = Vec::new();
    for writer in 0..4 {
        let store = at.open().await?;
        writers.push(tokio::spawn(async move {
            for n in 0..5 {
                store.append_message(said(format!("{writer} {n}"))).await?;
            }
            Ok::<(), Error>(())
        }));
    }
    for writer in writers {
        writer.await.map_err(|_| BrokenRule::new("a writer panicked".to_owned()))??;
    }
    let store = at.open().await?;
    same!(seqs(store.read_tail(99).await)?, (1..=20).collect::<Vec<_>>());
    let mut words = texts(store.read_tail(99).await)?;
    words.sort_unstable();
    words.dedup();
    same!(words.len(), 20);
    Ok(())
}
