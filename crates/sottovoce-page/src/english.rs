//! All words of the pages, in English.

use sottovoce::{ChatRole, Scope};

/// A noun for one and for many.
type Noun = (&'static str, &'static str);

/// Names texts, each on a line.
macro_rules! texts {
    ($($name:ident = $text:literal;)*) => { $(pub(crate) const $name: &str = $text;)* };
}

texts! {
    CONVERSATIONS = "Conversations"; SEARCH = "Search"; NUMBERS = "Numbers"; HEALTH = "Health";
    YOUR_DATA = "Your data"; SETTINGS = "Settings"; TIMELINE = "Timeline"; SEES = "What the model sees"; FORGET = "Forget"; LOCK = "Lock";
    MAIN = "Main"; ONE_CONVERSATION = "This conversation"; OF_CONVERSATION = "Of this conversation";
    SKIP = "Skip to the content"; DETAILS = "Details of a message"; TO_CONVERSATIONS = "All conversations";
    TO_HEALTH = "What Health says about it";
    GO_BACK = "Go back, or start from all conversations.";
    OTHER_HOST = "This server has another name. Open the link that was printed when it was started.\n";
    OTHER_ORIGIN = "Another web page asked for this, so it was refused.\n";
    ONLY_GET_AND_POST = "Only GET and POST are answered.\n";
    TOO_MANY_GUESSES = "Too many wrong tokens were sent. Try again in a second.\n";
    TOO_MANY = "Too many connections are open. Close some pages, and try again.\n";
    READ_ONLY = "This page is read-only (Page.ReadOnly), so nothing was changed.\n";
    READ_ONLY_NOTICE = "Read-only: nothing can be changed here.";
    FORGED = "This form was not made by this page, or the page was made before it was locked. Load it again, and try once more.\n";
    TOO_MUCH = "Others send or load too much at this moment. Try again soon.\n";
    BODY_TOO_LONG = "This is more than this form may hold.\n";
    BROKE_OFF = "The program broke this off. Try again, and look at what it logged.\n";
    BODY_TOO_SLOW = "The form took too long to arrive. Try again.\n";
    CLOSED_TITLE = "Not let in";
    CLOSED = "Open the newest link that is printed where the page was started: a new one just now, if the last was used. It lets one browser in, once.";
    ENTERED_TITLE = "Let in";
    LINK_USED = "This link was used already, or belongs to an earlier run.";
    LOCKED_TITLE = "Locked";
    LOCKED = "Nobody used the page for a while, or it was locked. A new link is printed where the page was started.";
    TOKEN = "Token";
    WRONG_TOKEN = "This is not the token (Page.Token).";
    UNLOCK = "Unlock"; PASSPHRASE = "Passphrase"; PASSPHRASE_TITLE = "The passphrase";
    PASSPHRASE_WHY = "The store is sealed under a passphrase. It is kept in memory until the page locks, and nowhere else.";
    WRONG_PASSPHRASE = "The store does not open with this passphrase.";
    NO_PASSPHRASE = "No passphrase can unlock this page now. Open the new link that was printed where it was started.\n";
    NOTHING_TITLE = "Nothing is remembered yet";
    NOTHING_YET = "There is no store and no key. Both are made with the first message.";
    BEGIN = "Make the key and begin";
    BEGIN_HELP = "The key is made in a file on this machine. Health tells where it is: back it up, because without it nobody can read what is stored.";
    FAILED_TITLE = "This could not be done"; NOT_FOUND_TITLE = "Not there";
    WRONG_TITLE = "This was not understood"; NO_SUCH_PAGE = "There is no such page.";
    ALL_OF_IT = "All of it"; WITH_ALL_STORED = "With everything that is stored with it (JSON)";
    NO_SUCH_CONVERSATION = "There is no conversation of this name.";
    NO_SUCH_MESSAGE = "There is no message with this number. It may have been forgotten.";
    NO_SUCH_ARTIFACT = "There is no such artifact. It may have been forgotten.";
    ARTIFACT_DAMAGED = "The contents of this artifact cannot be read.";
    UNREADABLE = "this conversation cannot be read.";
    SKIPPED = "something here cannot be read, and is left out.";
    NOTHING_THAT_DAY = "Nothing was said on that day. This is what stands nearest to it.";
    UNCLEAR = "Something in this address or form is missing, or is not what belongs there.";
    GONE_ALREADY = "Nothing was left to do: another program has forgotten it already.";
    NOT_A_DAY = "This is not a day."; WRITE_A_DAY = "Write it as 2025-08-24.";
    NOT_NUMBERS = "These are not numbers of messages.";
    WRITE_NUMBERS = "Write them as 7, 9-12. They begin at 1.";
    NOT_A_NUMBER = "This is not a number that fits here.";
    WHOLE_NUMBER = "Write a whole number of at least 1, or 2 for messages, or leave it empty for no limit.";
    NOTHING_SELECTED = "Nothing was selected.";
    SELECT_SOMETHING = "Select at least one message that is there.";
    ALREADY_GONE = "All of this is forgotten already.";
    ASKED_TOO_LONG = "This is more than can be looked for at once.";
    ASK_SHORTER = "Ask for at most 2,000 bytes.";
    NO_WORDS = "There are no words."; TYPE_SOME = "Type what you would say.";
    TOO_LONG = "The title or a tag is too long.";
    SHORTER = "A title has at most 200 characters, a tag 64.";
    PLAN_USED = "This was done already, or the page was locked since.";
    PLAN_AGAIN = "Select it again, and you see what would go now.";
    NOT_SURE = "Nothing was deleted: the box was not ticked.";
    NOT_UNDERSTOOD = "is not understood.";
    WRITE_A_SEARCH = "Write a day as 2025, 2025-05 or 2025-05-11, a name after from: or speaker:, and each filter once.";
    FIND = "Find"; KIND = "Kind"; TAG = "Tag"; ANY_TAG = "Any"; SHOW = "Show"; ALL_KINDS = "All";
    PEOPLE = "People"; ROOMS = "Rooms"; CONTEXTS = "Contexts"; CONTEXT = "context";
    NOTHING_SAID = "Nothing was said yet."; SAY_SOMETHING = "Say something";
    NONE_MATCH = "No conversation has all of this."; LAST_SAID = "last"; EXPIRES = "expires"; EXPIRED = "expired";
    KEPT = "kept for ever"; KEPT_TILL_EXPIRY = "kept until it expires"; GO_TO_DAY = "Day"; GO = "Go"; SEARCH_HERE = "Search here"; SELECT = "Select"; OLDER = "Older";
    NEWER = "Newer"; NEWEST = "Newest"; NOTHING_HERE = "Nothing was said here yet."; MESSAGE = "message";
    TOOL_RESULT = "Result";
    MOVED_TO_ARTIFACT = "Its text is kept as an artifact";
    RESTORED = "restored from a snapshot"; IMPORTED = "imported"; PRUNED = "kept out of prompts"; ASIDE = "perhaps a program's task";
    CLEARED = "The context was cleared"; FORGET_PICKED = "Forget what is selected…"; SAY_LABEL = "Say something…";
    SAY = "Say"; RETRY = "Retry"; STOP = "Stop"; OFF_RECORD = "off the record"; THINKING = "thinking…";
    LOOKED_UP = "looking it up…"; ANSWERED = "The answer has ended."; STOPPED = "Stopped. What was shown is kept.";
    OFF_RECORD_TITLE = "Off the record";
    OFF_RECORD_HELP = "Neither your words nor this answer are stored. They are gone once you leave this page.";
    BACK_TO_TIMELINE = "Back to the timeline"; MESSAGE_TITLE = "Message"; IN_ITS_PLACE = "In its place";
    AS_FILE = "All of it as a file"; ROLE = "Role"; THREAD = "Thread"; CALLED = "Called";
    WHERE_IT_LIES = "Where it lies"; COPIES = "Copies"; FILE = "File"; RECORD = "Record";
    SEALED_SIZE = "Sealed size"; SEAL = "Seal";
    SEAL_HOLDS = "holds: AES-256-GCM, read and checked just now";
    SEAL_BROKEN = "does not open:"; KEY = "Key"; NOWHERE = "It is on the disk no more.";
    NO_COPIES = "There is no other copy of it in this store.";
    ORIGINAL = "Restored from"; RESTORED_COPIES = "Restored copies"; IN_SNAPSHOTS = "In snapshots";
    IN_SUMMARIES = "In summaries"; ARTIFACTS = "Artifacts";
    BACKUPS_STAY = "Exports and backups that you made before are not known here.";
    FORGET_THIS = "Forget this message…"; ARTIFACT = "Artifact"; SIZE = "Size"; STORED = "Stored";
    REFERENCE = "Reference"; SAVE_FILE = "Save as a file"; NEXT_LINES = "Next lines";
    NOT_TEXT = "This is not text, so it is not shown.";
    WORDS = "Words"; NARROW = "Only some of it"; CONVERSATION = "Conversation";
    ALL_OF_THEM = "All of them"; SAID_BY = "Said by"; ANYBODY = "Anybody"; ASSISTANT = "The assistant";
    TOOL = "A tool"; SYSTEM = "The system"; SPEAKER = "Speaker"; SINCE = "From"; UNTIL = "To";
    SEARCH_HELP = "Words in quotes stand in this order. recip* finds words that begin so.";
    NOTHING_FOUND = "Nothing was found."; NONE_EXACT = "No message has all these words."; FITTING = "What fits best, in other words too";
    DID_YOU_MEAN = "Did you mean"; SPREAD = "In these conversations:"; ELSEWHERE = "Other conversations have it too:";
    SEES_INTRO = "Type what you would say. This shows the prompt that the model would get for it, and stores nothing.";
    SEES_WORDS = "What you would say"; SHOW_PROMPT = "Show the prompt"; THE_PROMPT = "The prompt";
    SYSTEM_PROMPT = "system prompt"; SHOW_TEXT = "Show the text"; YOUR_WORDS = "your words"; STABLE = "memory";
    HISTORY = "history"; RECALLED = "recalled"; OF = "of"; CACHED = "in the cache";
    CACHE_UNKNOWN = "What the server has in its cache is known once a turn was made from this page.";
    LEFT_OUT = "Left out";
    NOTHING_LEFT_OUT = "Nothing that was offered was left out.";
    LAST_TURNS = "The last turns";
    NO_TURNS = "No turn was made from this page since it was started.";
    PROMPT_TOKENS = "Tokens of the prompt"; FROM_CACHE = "From the cache"; UNCHANGED = "As in the last request";
    ANSWER_TOKENS = "Tokens of the answer"; FIRST_WORD = "First word after"; WHOLE_TIME = "Whole answer after";
    SERVER_CUT = "the server seems to have cut the prompt";
    FORGET_TITLE = "Forget";
    FORGET_INTRO = "First you see exactly what would go. Nothing goes before you agree to that.";
    NUMBERS_OF_MESSAGES = "Messages by number"; A_DAY = "A day"; A_PERSON = "What a person said";
    WHAT_IS_FOUND = "Everything with these words"; WHOLE_CONVERSATION = "The whole conversation";
    SHOW_WHAT_GOES = "Show what goes…"; EXPORT_FIRST = "Keep a copy first?";
    EXPORT_HELP = "The file is not sealed: whoever has it can read it.";
    EXPORT_JSON = "Export everything (JSON)"; EXPORT_MARKDOWN = "Export to read (Markdown)";
    WHAT_WILL_GO = "What will go"; WHAT_STAYS = "What stays";
    STAYS_BACKUPS = "Backups and exports that you made before.";
    WITH_THE_SAME_WORDS = "with the same words, in";
    STAYS_ELSEWHERE = "What other programs, model servers and devices that are not connected have copied.";
    STAYS_CONTEXT = "The context itself, with its name, its personality and its limits.";
    I_AM_SURE = "I have read this, and want it"; FORGET_FOR_EVER = "Forget for ever";
    KEEP_ALL = "Keep everything"; THESE_MESSAGES = "These messages";
    CHANGED_MEANWHILE = "The conversation has changed meanwhile, so nothing was done. This is how it stands now.";
    GOES_ASKED = "that you selected"; GOES_ANSWERS = "in answer to these";
    ANSWERS_TOO = "And the answers to these, which often repeat them";
    GOES_ORIGINALS = "of which these are restored copies";
    GOES_COPIES = "restored from these";
    GOES_HIDDEN = "over the limits, which would be seen again in their place";
    GOES_LOST = "without a readable message, recorded as gone";
    GOES_CHANGED = "lose these messages, and their summary";
    GOES_EMPTIED = "hold nothing else, and go";
    GOES_CLOSED = "cannot be read, and never will be";
    GOES_SUMMARIES = "made of these messages";
    GOES_ARTIFACTS = "that only these messages refer to"; GOES_BACKUPS = "of this conversation; the next one is made without";
    GOES_TITLE = "The title that the model proposed.";
    GOES_DESCRIPTION = "Title, tags and notes of the conversation.";
    GOES_FOLDER = "The empty conversation with its folder.";
    GONE_TITLE = "Gone"; GONE_AT = "Forgotten on"; REMOVED_FILES = "Deleted"; RECORDED = "Newly recorded as gone";
    NUMBERS_WORD = "Numbers";
    RECORD_EXPLAINED = "The deletion is a sealed record of these numbers, without words. It stays, so that a check reports no gap, and no backup brings the messages back.";
    FOLDER_GONE = "The conversation's folder is gone, with its settings.";
    NAME = "Name"; TITLE = "Title"; TAGS = "Tags, separated by commas"; SAVE = "Save";
    KEPT_TITLE = "How long it is kept"; MOST_MESSAGES = "The most messages";
    TTL = "Expires after the last message"; UNIT = "Unit"; NO_LIMIT = "no limit";
    SHOW_EFFECT = "Show the effect…"; USE_CONFIGURED = "As configured for all"; OWN = "This conversation's own";
    AS_CONFIGURED = "As configured for all conversations";
    WINDOW = "Window"; PROMPTS_HOLD = "Prompts hold"; ROLLING = "what was said within a time";
    WINDOW_LENGTH = "That time"; PERSONA = "Persona"; PERSONA_PROMPT = "Who the model is";
    PERSONALITY = "Personality"; TEMPERATURE = "Temperature";
    EXPIRY_DAYS = "Expires after days without a word";
    NO_PERSONA = "This conversation has none of its own: the model is who the configured system prompt says.";
    PRESET = "Give it one"; OWN_WORDS = "In your own words, below"; PRESETS_EXPLAINED = "What these are for";
    PERSONA_WORDS = "In your own words"; ASSIGN = "Give it this persona"; NEVER = "never"; TAKE_AWAY = "Take it away";
    TAKE_AWAY_HELP = "Without it, the model is again who the configured system prompt says. Every message stays.";
    NO_PERSONA_CHOSEN = "No persona was chosen."; TWO_PERSONAS = "A persona was chosen, and another one written.";
    CHOOSE_PERSONA = "Choose one, or write in your own words who the model is.";
    HAS_PERSONA = "This conversation has a persona already."; LOAD_AGAIN = "Load its settings again to change that one.";
    TOO_LONG_HERE = "too long to be changed here";
    LIMITS_EFFECT = "What these limits would do";
    WILL_BE_HIDDEN = "would be hidden at once, and deleted soon";
    WERE_HIDDEN = "are hidden by the limits of today, and would not be any more";
    HIDES_NOTHING = "No message is hidden or shown by this.";
    HIDDEN_FATE = "What is hidden today"; SHOW_AGAIN = "show it again"; DELETE_HIDDEN = "delete it for ever";
    CHANGE_LIMITS = "Change the limits"; CANCEL = "Cancel";
    SNAPSHOTS_TITLE = "Snapshots"; SNAPSHOTS_HEADING = "Context, snapshots, artifacts"; CONTEXT_BEGINS = "Where the context begins"; NOT_CLEARED = "With the first message: it was not cleared.";
    CLEAR = "Clear the context"; UNDO_CLEAR = "Undo the last clear";
    CLEAR_HELP = "Later prompts then hold nothing of what was said so far. Nothing is deleted.";
    DESCRIPTION = "Description"; SAVE_SNAPSHOT = "Save a snapshot"; RESTORE = "Restore";
    SNAPSHOT_HELP = "A snapshot keeps what prompts hold now, with a summary by the model. Restored, its messages are said again, as of now.";
    NO_SNAPSHOTS = "No snapshot was saved in this conversation."; NO_ARTIFACTS = "No artifact was added to this conversation.";
    NEW_NAME = "Name of a new one"; NEW_CONVERSATION = "New conversation"; NOT_A_NAME = "This cannot be the name of a conversation.";
    WRITE_A_NAME = "Write a name of one line, of at most 200 bytes.";
    STORE_SETTINGS_INTRO = "What applies to the whole store, and where it comes from. To change something, edit your own file:";
    SETTING = "Setting"; VALUE = "Value"; ORIGIN = "From"; DEFAULT = "default"; NOT_SET = "not set"; IN = "in";
    LARGEST = "The largest conversations";
    NOTHING_COUNTED = "There is nothing to count yet.";
    A_DAY_TITLE = "Messages a day"; BY_HOUR = "By hour"; BY_PERSON = "By person";
    TOKENS_TITLE = "Tokens of prompts"; READ_ANEW = "Read anew"; FIRST_WORD_TITLE = "Time to the first word";
    MILLISECONDS = "milliseconds"; RECALLED_TITLE = "Brought in by recall";
    FIGURES_SINCE = "The last 30 days up to the newest message. Tokens and times are those that the model server reported.";
    NO_NAME = "no name given"; AS_TABLE = "As a table"; SET_UP = "The set-up"; EVERY_FILE = "Every file";
    VERIFY_INTRO = "Reads and opens every file of every conversation, and reports all that is wrong. It changes nothing.";
    KNOWS_TITLE = "What it knows about you";
    KNOWS_INTRO = "What was said here of people and their lives, found by its meaning. Some of it may be wrong or missing.";
    KNOWS_SO_FAR = "have been looked at so far. Load the page again for more."; KNOWS_NOTHING = "Nothing was found.";
    DATA_INTRO = "What this store knows of you, and what becomes of it. It was looked up just now.";
    VERIFY = "Check every file"; VERIFYING = "Checking"; VERIFIED_AT = "Last checked on"; SOUND = "sound";
    NOT_SOUND = "not sound"; GOOD = "good"; WARN = "note"; BAD = "wrong";
}

/// What is looked for in what people said, and the question that finds it.
pub(crate) const KNOWS_TOPICS: [(&str, &str); 4] = [
    ("People", "Who are my family and friends, and what are they called?"),
    ("Health", "What illnesses, allergies and appointments with doctors do I have?"),
    ("Places", "Where do I live, work and travel?"),
    ("Likes and habits", "What do I like, dislike and always do?"),
];

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
pub(crate) const BACKUPS_COUNTED: Noun = ("daily backup", "daily backups");
pub(crate) const DAY: Noun = ("day", "days");
pub(crate) const HOUR: Noun = ("hour", "hours");
pub(crate) const MINUTE: Noun = ("minute", "minutes");
pub(crate) const SECOND: Noun = ("second", "seconds");

/// Whose conversation it is.
pub(crate) fn scope_name(scope: &Scope) -> String {
    match scope {
        Scope::Default => "The default conversation".to_owned(),
        Scope::Dm { user } => called("Person", user),
        Scope::Guild { guild, channel, user } => format!(
            "{} in {}, {}",
            called("Person", user),
            called("channel", channel),
            called("server", guild)
        ),
        Scope::Named { id } => id.clone(),
        other => other.to_string(),
    }
}

/// A name; of a mere number, what it is the number of.
fn called(what: &str, name: &str) -> String {
    match name.bytes().all(|byte| byte.is_ascii_digit()) {
        true => format!("{what} {name}"),
        false => name.to_owned(),
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

/// What a metadata key of the library's own means.
pub(crate) fn metadata(key: &str) -> Option<&'static str> {
    Some(match key {
        "answerTokens" => "Tokens of the answer",
        "artifact" => "Artifact",
        "aside" => "Aside",
        "cameFrom" => "Came from",
        "cachedTokens" => "From the cache",
        "confidence" => "Heard with confidence",
        "cutOff" => "Incomplete",
        "expiresAt" => "Expires",
        "firstWordMs" => "First word, in ms",
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

pub(crate) fn more(size: &str) -> String {
    format!("{size} more")
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

pub(crate) fn earlier(messages: &str) -> String {
    format!("{messages} before these, not shown here")
}

/// "And 12 conversations more, of which 3 are not sound."
pub(crate) fn not_shown(conversations: &str, wrong: u64) -> String {
    match wrong {
        0 => format!("And {conversations} more, all of them sound."),
        wrong => format!("And {conversations} more, of which {wrong} are not sound."),
    }
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
