//! All words of the pages, in English.

use sottovoce::prompt::EntryOutcome;
use sottovoce::{ChatRole, Scope};

/// A noun for one and for many.
type Noun = (&'static str, &'static str);

pub(crate) const CONVERSATIONS: &str = "Conversations";
pub(crate) const SEARCH: &str = "Search";
pub(crate) const NUMBERS: &str = "Numbers";
pub(crate) const HEALTH: &str = "Health";
pub(crate) const SETTINGS: &str = "Settings";
pub(crate) const TIMELINE: &str = "Timeline";
pub(crate) const SEES: &str = "What the model sees";
pub(crate) const FORGET: &str = "Forget";
pub(crate) const LOCK: &str = "Lock";
pub(crate) const MAIN: &str = "Main";
pub(crate) const ONE_CONVERSATION: &str = "This conversation";
pub(crate) const OF_CONVERSATION: &str = "Of this conversation";
pub(crate) const SKIP: &str = "Skip to the content";
pub(crate) const DETAILS: &str = "Details of a message";
pub(crate) const TO_CONVERSATIONS: &str = "All conversations";
pub(crate) const TO_HEALTH: &str = "What Health says about it";
pub(crate) const GO_BACK: &str = "Go back, or start from all conversations.";
pub(crate) const OTHER_HOST: &str =
    "This server has another name. Open the link that was printed when it was started.\n";
pub(crate) const OTHER_ORIGIN: &str = "Another web page asked for this, so it was refused.\n";
pub(crate) const ONLY_GET_AND_POST: &str = "Only GET and POST are answered.\n";
pub(crate) const TOO_MANY: &str =
    "Too many connections are open. Close some pages, and try again.\n";
pub(crate) const READ_ONLY: &str =
    "This page is read-only (Page.ReadOnly), so nothing was changed.\n";
pub(crate) const READ_ONLY_NOTICE: &str = "Read-only: nothing can be changed here.";
pub(crate) const FORGED: &str = "This form was not made by this page, or the page was made before it was locked. Load it again, and try once more.\n";
pub(crate) const BODY_TOO_LONG: &str = "This is more than a form may hold (4 MiB).\n";
pub(crate) const BODY_TOO_SLOW: &str = "The form took too long to arrive. Try again.\n";
pub(crate) const CLOSED_TITLE: &str = "Not let in";
pub(crate) const CLOSED: &str =
    "Open the link that was printed where the page was started. It lets one browser in, once.";
pub(crate) const LINK_USED: &str = "This link was used already, or belongs to an earlier run.";
pub(crate) const LOCKED_TITLE: &str = "Locked";
pub(crate) const LOCKED: &str = "Nobody used the page for a while, or it was locked. A new link is printed where the page was started.";
pub(crate) const TOKEN: &str = "Token";
pub(crate) const WRONG_TOKEN: &str = "This is not the token (Page.Token).";
pub(crate) const UNLOCK: &str = "Unlock";
pub(crate) const PASSPHRASE: &str = "Passphrase";
pub(crate) const PASSPHRASE_TITLE: &str = "The passphrase";
pub(crate) const PASSPHRASE_WHY: &str = "The store is sealed under a passphrase. It is kept in memory until the page locks, and nowhere else.";
pub(crate) const WRONG_PASSPHRASE: &str = "The store does not open with this passphrase.";
pub(crate) const NO_PASSPHRASE: &str = "No passphrase can unlock this page now. Open the new link that was printed where it was started.\n";
pub(crate) const NOTHING_TITLE: &str = "Nothing is remembered yet";
pub(crate) const NOTHING_YET: &str =
    "There is no store and no key. Both are made with the first message.";
pub(crate) const BEGIN: &str = "Make the key and begin";
pub(crate) const BEGIN_HELP: &str = "The key is made in a file on this machine. Health tells where it is: back it up, because without it nobody can read what is stored.";
pub(crate) const FAILED_TITLE: &str = "This could not be done";
pub(crate) const NOT_FOUND_TITLE: &str = "Not there";
pub(crate) const WRONG_TITLE: &str = "This was not understood";
pub(crate) const NO_SUCH_PAGE: &str = "There is no such page.";
pub(crate) const NO_SUCH_CONVERSATION: &str = "There is no conversation of this name.";
pub(crate) const NO_SUCH_MESSAGE: &str =
    "There is no message with this number. It may have been forgotten.";
pub(crate) const NO_SUCH_ARTIFACT: &str = "There is no such artifact. It may have been forgotten.";
pub(crate) const ARTIFACT_DAMAGED: &str = "The contents of this artifact cannot be read.";
pub(crate) const UNREADABLE: &str = "this conversation cannot be read.";
pub(crate) const SKIPPED: &str = "something here cannot be read, and is left out.";
pub(crate) const NOT_A_DAY: &str = "This is not a day.";
pub(crate) const WRITE_A_DAY: &str = "Write it as 2025-08-24.";
pub(crate) const NOT_NUMBERS: &str = "These are not numbers of messages.";
pub(crate) const WRITE_NUMBERS: &str = "Write them as 7, 9-12. They begin at 1.";
pub(crate) const NOT_A_NUMBER: &str = "This is not a number that fits here.";
pub(crate) const WHOLE_NUMBER: &str =
    "Write a whole number of at least 1, or 2 for messages, or leave it empty for no limit.";
pub(crate) const NOTHING_SELECTED: &str = "Nothing was selected.";
pub(crate) const SELECT_SOMETHING: &str = "Select at least one message that is there.";
pub(crate) const ALREADY_GONE: &str = "All of this is forgotten already.";
pub(crate) const NO_WORDS: &str = "There are no words.";
pub(crate) const TYPE_SOME: &str = "Type what you would say.";
pub(crate) const TOO_LONG: &str = "The title or a tag is too long.";
pub(crate) const SHORTER: &str = "A title has at most 200 characters, a tag 64.";
pub(crate) const PLAN_USED: &str = "This was done already, or the page was locked since.";
pub(crate) const PLAN_AGAIN: &str = "Select it again, and you see what would go now.";
pub(crate) const NOT_SURE: &str = "Nothing was deleted: the box was not ticked.";
pub(crate) const NOT_UNDERSTOOD: &str =
    "is not understood. Days are written 2025, 2025-05 or 2025-05-11.";
pub(crate) const FIND: &str = "Find";
pub(crate) const KIND: &str = "Kind";
pub(crate) const TAG: &str = "Tag";
pub(crate) const ANY_TAG: &str = "Any";
pub(crate) const SHOW: &str = "Show";
pub(crate) const ALL_KINDS: &str = "All";
pub(crate) const PEOPLE: &str = "People";
pub(crate) const ROOMS: &str = "Rooms";
pub(crate) const CONTEXTS: &str = "Contexts";
pub(crate) const CONTEXT: &str = "context";
pub(crate) const NOTHING_SAID: &str = "Nothing was said yet.";
pub(crate) const SAY_SOMETHING: &str = "Say something";
pub(crate) const NONE_MATCH: &str = "No conversation has all of this.";
pub(crate) const LAST_SAID: &str = "last";
pub(crate) const EXPIRES: &str = "expires";
pub(crate) const EXPIRED: &str = "expired";
pub(crate) const KEPT: &str = "kept for ever";
pub(crate) const GO_TO_DAY: &str = "Day";
pub(crate) const GO: &str = "Go";
pub(crate) const SEARCH_HERE: &str = "Search here";
pub(crate) const OLDER: &str = "Older";
pub(crate) const NEWER: &str = "Newer";
pub(crate) const NEWEST: &str = "Newest";
pub(crate) const NOTHING_HERE: &str = "Nothing was said here yet.";
pub(crate) const MESSAGE: &str = "message";
pub(crate) const TOOL_RESULT: &str = "Result";
pub(crate) const MOVED_TO_ARTIFACT: &str = "Its text is kept as an artifact";
pub(crate) const RESTORED: &str = "restored from a snapshot";
pub(crate) const IMPORTED: &str = "imported";
pub(crate) const PRUNED: &str = "kept out of prompts";
pub(crate) const CLEARED: &str = "The context was cleared";
pub(crate) const FORGET_PICKED: &str = "Forget what is selected…";
pub(crate) const SAY_LABEL: &str = "Say something…";
pub(crate) const SAY: &str = "Say";
pub(crate) const RETRY: &str = "Retry";
pub(crate) const STOP: &str = "Stop";
pub(crate) const OFF_RECORD: &str = "off the record";
pub(crate) const THINKING: &str = "thinking…";
pub(crate) const LOOKED_UP: &str = "looking it up…";
pub(crate) const STOPPED: &str = "Stopped. What was shown is kept.";
pub(crate) const OFF_RECORD_TITLE: &str = "Off the record";
pub(crate) const OFF_RECORD_HELP: &str =
    "Neither your words nor this answer are stored. They are gone once you leave this page.";
pub(crate) const BACK_TO_TIMELINE: &str = "Back to the timeline";
pub(crate) const MESSAGE_TITLE: &str = "Message";
pub(crate) const IN_ITS_PLACE: &str = "In its place";
pub(crate) const AS_FILE: &str = "All of it as a file";
pub(crate) const ROLE: &str = "Role";
pub(crate) const THREAD: &str = "Thread";
pub(crate) const CALLED: &str = "Called";
pub(crate) const WHERE_IT_LIES: &str = "Where it lies";
pub(crate) const COPIES: &str = "Copies";
pub(crate) const FILE: &str = "File";
pub(crate) const RECORD: &str = "Record";
pub(crate) const SEALED_SIZE: &str = "Sealed size";
pub(crate) const SEAL: &str = "Seal";
pub(crate) const SEAL_HOLDS: &str = "holds: AES-256-GCM, read and checked just now";
pub(crate) const SEAL_BROKEN: &str = "does not open:";
pub(crate) const KEY: &str = "Key";
pub(crate) const NOWHERE: &str = "It is on the disk no more.";
pub(crate) const NO_COPIES: &str = "There is no other copy of it in this store.";
pub(crate) const ORIGINAL: &str = "Restored from";
pub(crate) const RESTORED_COPIES: &str = "Restored copies";
pub(crate) const IN_SNAPSHOTS: &str = "In snapshots";
pub(crate) const IN_SUMMARIES: &str = "In summaries";
pub(crate) const ARTIFACTS: &str = "Artifacts";
pub(crate) const BACKUPS_STAY: &str =
    "Exports and backups that were made before are not known here.";
pub(crate) const FORGET_THIS: &str = "Forget this message…";
pub(crate) const ARTIFACT: &str = "Artifact";
pub(crate) const SIZE: &str = "Size";
pub(crate) const STORED: &str = "Stored";
pub(crate) const REFERENCE: &str = "Reference";
pub(crate) const SAVE_FILE: &str = "Save as a file";
pub(crate) const NEXT_LINES: &str = "Next lines";
pub(crate) const NOT_TEXT: &str = "This is not text, so it is not shown.";
pub(crate) const WORDS: &str = "Words";
pub(crate) const HOW: &str = "How to search";
pub(crate) const BY_WORDS: &str = "these exact words, newest first";
pub(crate) const BY_FIT: &str = "what fits best, in other words too";
pub(crate) const NARROW: &str = "Only some of it";
pub(crate) const CONVERSATION: &str = "Conversation";
pub(crate) const ALL_OF_THEM: &str = "All of them";
pub(crate) const SAID_BY: &str = "Said by";
pub(crate) const ANYBODY: &str = "Anybody";
pub(crate) const ASSISTANT: &str = "The assistant";
pub(crate) const TOOL: &str = "A tool";
pub(crate) const SYSTEM: &str = "The system";
pub(crate) const SPEAKER: &str = "Speaker";
pub(crate) const SINCE: &str = "From";
pub(crate) const UNTIL: &str = "To";
pub(crate) const SEARCH_HELP: &str =
    "Words in quotes stand in this order. recip* finds words that begin so.";
pub(crate) const NOTHING_FOUND: &str = "Nothing was found.";
pub(crate) const FITS: &str = "fits";
pub(crate) const SEES_INTRO: &str = "Type what you would say. This shows the prompt that the model would get for it, and stores nothing.";
pub(crate) const SEES_WORDS: &str = "What you would say";
pub(crate) const SHOW_PROMPT: &str = "Show the prompt";
pub(crate) const THE_PROMPT: &str = "The prompt";
pub(crate) const SYSTEM_PROMPT: &str = "system prompt";
pub(crate) const SHOW_TEXT: &str = "Show the text";
pub(crate) const YOUR_WORDS: &str = "your words";
pub(crate) const STABLE: &str = "memory";
pub(crate) const HISTORY: &str = "history";
pub(crate) const RECALLED: &str = "recalled";
pub(crate) const OF: &str = "of";
pub(crate) const CACHED: &str = "in the cache";
pub(crate) const CACHE_UNKNOWN: &str =
    "What the server has in its cache is known once a turn was made from this page.";
pub(crate) const LEFT_OUT: &str = "Left out";
pub(crate) const NOTHING_LEFT_OUT: &str = "Nothing that was offered was left out.";
pub(crate) const LAST_TURNS: &str = "The last turns";
pub(crate) const NO_TURNS: &str = "No turn was made from this page since it was started.";
pub(crate) const PROMPT_TOKENS: &str = "Tokens of the prompt";
pub(crate) const FROM_CACHE: &str = "From the cache";
pub(crate) const UNCHANGED: &str = "As in the last request";
pub(crate) const ANSWER_TOKENS: &str = "Tokens of the answer";
pub(crate) const FIRST_WORD: &str = "First word after";
pub(crate) const WHOLE_TIME: &str = "Whole answer after";
pub(crate) const SERVER_CUT: &str = "the server seems to have cut the prompt";
pub(crate) const FORGET_TITLE: &str = "Forget";
pub(crate) const FORGET_INTRO: &str =
    "First you see exactly what would go. Nothing goes before you agree to that.";
pub(crate) const NUMBERS_OF_MESSAGES: &str = "Messages by number";
pub(crate) const A_DAY: &str = "A day";
pub(crate) const A_PERSON: &str = "What a person said";
pub(crate) const WHAT_IS_FOUND: &str = "Everything with these words";
pub(crate) const WHOLE_CONVERSATION: &str = "The whole conversation";
pub(crate) const SHOW_WHAT_GOES: &str = "Show what goes…";
pub(crate) const EXPORT_FIRST: &str = "Keep a copy first?";
pub(crate) const EXPORT_HELP: &str = "The file is not sealed: whoever has it can read it.";
pub(crate) const EXPORT_JSON: &str = "Export everything (JSON)";
pub(crate) const EXPORT_MARKDOWN: &str = "Export to read (Markdown)";
pub(crate) const WHAT_WILL_GO: &str = "What will go";
pub(crate) const WHAT_STAYS: &str = "What stays";
pub(crate) const STAYS_BACKUPS: &str = "Backups and exports that were made before.";
pub(crate) const STAYS_ELSEWHERE: &str =
    "What other programs, model servers and devices that are not connected have copied.";
pub(crate) const STAYS_CONTEXT: &str =
    "The context itself, with its name, its personality and its limits.";
pub(crate) const I_AM_SURE: &str = "I have read this, and want it";
pub(crate) const FORGET_FOR_EVER: &str = "Forget for ever";
pub(crate) const KEEP_ALL: &str = "Keep everything";
pub(crate) const THESE_MESSAGES: &str = "These messages";
pub(crate) const CHANGED_MEANWHILE: &str =
    "The conversation has changed meanwhile, so nothing was done. This is how it stands now.";
pub(crate) const GOES_ASKED: &str = "that you selected";
pub(crate) const GOES_ORIGINALS: &str = "of which these are restored copies";
pub(crate) const GOES_COPIES: &str = "restored from these";
pub(crate) const GOES_HIDDEN: &str = "over the limits, which would be seen again in their place";
pub(crate) const GOES_LOST: &str = "without a readable message, recorded as gone";
pub(crate) const GOES_CHANGED: &str = "lose these messages, and their summary";
pub(crate) const GOES_EMPTIED: &str = "hold nothing else, and go";
pub(crate) const GOES_CLOSED: &str = "cannot be read, and never will be";
pub(crate) const GOES_SUMMARIES: &str = "made of these messages";
pub(crate) const GOES_ARTIFACTS: &str = "that only these messages refer to";
pub(crate) const GOES_TITLE: &str = "The title that the model proposed.";
pub(crate) const GOES_DESCRIPTION: &str = "Title, tags and notes of the conversation.";
pub(crate) const GOES_FOLDER: &str = "The empty conversation with its folder.";
pub(crate) const GONE_TITLE: &str = "Gone";
pub(crate) const GONE_AT: &str = "Forgotten on";
pub(crate) const REMOVED_FILES: &str = "Deleted";
pub(crate) const RECORDED: &str = "Newly recorded as gone";
pub(crate) const NUMBERS_WORD: &str = "Numbers";
pub(crate) const RECORD_EXPLAINED: &str = "The deletion is a sealed record of these numbers, without words. It stays, so that a check reports no gap, and no backup brings the messages back.";
pub(crate) const FOLDER_GONE: &str = "The conversation's folder is gone, with its settings.";
pub(crate) const NAME: &str = "Name";
pub(crate) const TITLE: &str = "Title";
pub(crate) const TAGS: &str = "Tags, separated by commas";
pub(crate) const SAVE: &str = "Save";
pub(crate) const KEPT_TITLE: &str = "How long it is kept";
pub(crate) const MOST_MESSAGES: &str = "The most messages";
pub(crate) const TTL: &str = "Expires after the last message";
pub(crate) const UNIT: &str = "Unit";
pub(crate) const NO_LIMIT: &str = "no limit";
pub(crate) const SHOW_EFFECT: &str = "Show the effect…";
pub(crate) const USE_CONFIGURED: &str = "As configured for all";
pub(crate) const OWN: &str = "This conversation's own";
pub(crate) const AS_CONFIGURED: &str = "As configured for all conversations";
pub(crate) const WINDOW: &str = "Window";
pub(crate) const PROMPTS_HOLD: &str = "Prompts hold";
pub(crate) const ROLLING: &str = "what was said within a time";
pub(crate) const WINDOW_LENGTH: &str = "That time";
pub(crate) const PERSONA: &str = "Persona";
pub(crate) const PERSONA_PROMPT: &str = "Who the model is";
pub(crate) const PERSONALITY: &str = "Personality";
pub(crate) const TEMPERATURE: &str = "Temperature";
pub(crate) const EXPIRY_DAYS: &str = "Expires after days without a word";
pub(crate) const NO_PERSONA: &str =
    "This conversation is no context: the model is who the configured system prompt says.";
pub(crate) const LIMITS_EFFECT: &str = "What these limits would do";
pub(crate) const WILL_BE_HIDDEN: &str = "would be hidden at once, and deleted soon";
pub(crate) const WERE_HIDDEN: &str = "are hidden by the limits of today, and would not be any more";
pub(crate) const HIDES_NOTHING: &str = "No message is hidden or shown by this.";
pub(crate) const HIDDEN_FATE: &str = "What is hidden today";
pub(crate) const SHOW_AGAIN: &str = "show it again";
pub(crate) const DELETE_HIDDEN: &str = "delete it for ever";
pub(crate) const CHANGE_LIMITS: &str = "Change the limits";
pub(crate) const CANCEL: &str = "Cancel";
pub(crate) const STORE_SETTINGS_INTRO: &str = "What applies to the whole store, and where it comes from. To change something, edit your own file:";
pub(crate) const SETTING: &str = "Setting";
pub(crate) const VALUE: &str = "Value";
pub(crate) const ORIGIN: &str = "From";
pub(crate) const DEFAULT: &str = "default";
pub(crate) const NOT_SET: &str = "not set";
pub(crate) const IN: &str = "in";
pub(crate) const LARGEST: &str = "The largest conversations";
pub(crate) const NOTHING_COUNTED: &str = "There is nothing to count yet.";
pub(crate) const A_DAY_TITLE: &str = "Messages a day";
pub(crate) const BY_HOUR: &str = "By hour";
pub(crate) const BY_PERSON: &str = "By person";
pub(crate) const TOKENS_TITLE: &str = "Tokens of prompts";
pub(crate) const READ_ANEW: &str = "Read anew";
pub(crate) const FIRST_WORD_TITLE: &str = "Time to the first word";
pub(crate) const MILLISECONDS: &str = "milliseconds";
pub(crate) const RECALLED_TITLE: &str = "Brought in by recall";
pub(crate) const FIGURES_SINCE: &str = "The last 30 days up to the newest message. Tokens and times are those that the model server reported.";
pub(crate) const NO_NAME: &str = "no name given";
pub(crate) const AS_TABLE: &str = "As a table";
pub(crate) const SET_UP: &str = "The set-up";
pub(crate) const EVERY_FILE: &str = "Every file";
pub(crate) const VERIFY_INTRO: &str = "Reads and opens every file of every conversation, and reports all that is wrong. It changes nothing.";
pub(crate) const VERIFY: &str = "Check every file";
pub(crate) const VERIFYING: &str = "Checking";
pub(crate) const VERIFIED_AT: &str = "Last checked on";
pub(crate) const SOUND: &str = "sound";
pub(crate) const NOT_SOUND: &str = "not sound";
pub(crate) const GOOD: &str = "good";
pub(crate) const WARN: &str = "note";
pub(crate) const BAD: &str = "wrong";

pub(crate) const MESSAGES: Noun = ("message", "messages");
pub(crate) const CONVERSATIONS_COUNTED: Noun = ("conversation", "conversations");
pub(crate) const FINDINGS: Noun = ("finding", "findings");
pub(crate) const TOOL_CALLS: Noun = ("tool call", "tool calls");
pub(crate) const LINES: Noun = ("line", "lines");
pub(crate) const HITS: Noun = ("message", "messages");
pub(crate) const FORGOTTEN_MESSAGES: Noun = ("message forgotten", "messages forgotten");
pub(crate) const SUMMARIZED: Noun =
    ("message stands summarized above this", "messages stand summarized above this");
pub(crate) const MESSAGES_IN_PROMPT: Noun = ("message in the prompt", "messages in the prompt");
pub(crate) const TOKENS: Noun = ("token", "tokens");
pub(crate) const NUMBERS_COUNTED: Noun = ("number", "numbers");
pub(crate) const NUMBERS_GONE: Noun = ("number recorded as gone", "numbers recorded as gone");
pub(crate) const SNAPSHOTS: Noun = ("snapshot", "snapshots");
pub(crate) const SUMMARIES: Noun = ("summary", "summaries");
pub(crate) const ARTIFACTS_COUNTED: Noun = ("artifact", "artifacts");
pub(crate) const DAY: Noun = ("day", "days");
pub(crate) const HOUR: Noun = ("hour", "hours");
pub(crate) const MINUTE: Noun = ("minute", "minutes");
pub(crate) const SECOND: Noun = ("second", "seconds");

/// Whose conversation it is.
pub(crate) fn scope_name(scope: &Scope) -> String {
    match scope {
        Scope::Default => "The default conversation".to_owned(),
        Scope::Dm { user } => user.clone(),
        Scope::Guild { guild, channel, user } => format!("{user} in {channel} ({guild})"),
        Scope::Named { id } => id.clone(),
        other => other.to_string(),
    }
}

pub(crate) fn role(role: ChatRole) -> &'static str {
    match role {
        ChatRole::User => "You",
        ChatRole::Assistant => "Assistant",
        ChatRole::System => "System",
        ChatRole::Tool => "Tool",
    }
}

/// Why an answer is incomplete.
pub(crate) fn cut_off(reason: &str) -> &'static str {
    match reason {
        "interrupted" => "interrupted",
        "failed" => "failed here",
        "length" => "cut at the length limit",
        _ => "incomplete",
    }
}

/// Why a message is not in a prompt.
pub(crate) fn outcome(outcome: EntryOutcome) -> &'static str {
    match outcome {
        EntryOutcome::Included => "in the prompt",
        EntryOutcome::Duplicate => "offered twice",
        EntryOutcome::TheUtterance => "the words themselves",
        EntryOutcome::OtherScope => "of another conversation",
        EntryOutcome::BeforeStart => "said before it started clean",
        EntryOutcome::Cleared => "said before the context was cleared",
        EntryOutcome::Pruned => "kept out of prompts",
        EntryOutcome::LowConfidence => "heard with too little confidence",
        EntryOutcome::OverBudget => "no room left",
        _ => "left out",
    }
}

/// What a metadata key of the library's own means.
pub(crate) fn metadata(key: &str) -> Option<&'static str> {
    Some(match key {
        "answerTokens" => "Tokens of the answer",
        "artifact" => "Artifact",
        "cachedTokens" => "From the cache",
        "confidence" => "Heard with confidence",
        "cutOff" => "Incomplete",
        "expiresAt" => "Expires",
        "firstWordMs" => "First word after ms",
        "importedFrom" => "Imported from",
        "promptTokens" => "Tokens of the prompt",
        "recalled" => "Recalled messages",
        "restoredFrom" => "Restored from",
        "saidAt" => "Said at",
        "saidIn" => "Said in thread",
        "speaker" => "Speaker",
        "tool" => "Tool",
        _ => return None,
    })
}

pub(crate) fn select(number: u64) -> String {
    format!("Select message {number}")
}

pub(crate) fn whole_message(size: &str) -> String {
    format!("All of it ({size})")
}

pub(crate) fn pack_of(messages: &str) -> String {
    format!("a pack of {messages}")
}

pub(crate) fn at_most(messages: &str) -> String {
    format!("at most {messages}")
}

pub(crate) fn kept_for(time: &str) -> String {
    format!("kept for {time}")
}

pub(crate) fn some_of(some: u64, all: &str) -> String {
    format!("{some} of {all}")
}

pub(crate) fn and_more(more: u64) -> String {
    format!("And {more} more.")
}

pub(crate) fn lines_shown(first: u64, last: u64) -> String {
    format!("Lines {first} to {last}")
}

pub(crate) fn forget_found(messages: &str, of: &str) -> String {
    format!("Forget these {messages} of {of}…")
}

pub(crate) fn last_messages(number: usize) -> String {
    format!("the newest messages (about {number})")
}

pub(crate) fn counting(counted: &str, all: &str) -> String {
    format!("Counting: {counted} of {all} so far.")
}

pub(crate) fn cached(messages: u64) -> String {
    match messages {
        0 => "Nothing of the history begins as the last prompt did, so the server reads all of it anew.".to_owned(),
        messages => format!("The first {messages} of these messages stood in the last prompt in the same place, so a server that keeps a cache has read them already."),
    }
}

pub(crate) fn of_them_functions(tokens: usize) -> String {
    format!("{tokens} of them for functions")
}

pub(crate) fn window_label(used: usize, budget: Option<usize>) -> String {
    match budget {
        Some(budget) => format!("{used} of {budget} tokens of the window are used"),
        None => format!("{used} tokens are used"),
    }
}
