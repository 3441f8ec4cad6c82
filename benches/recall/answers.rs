//! How much of the answers is found, by kind of question.

use std::error::Error;
use std::path::{Path, PathBuf};

use sottovoce_recall::Weights;

use super::rows::{Goal, Row};
use super::support::print_table;
use super::{corpus, needs, quality};

/// Conversations and utterances that the project carries.
const CARRIED: &str = "crates/sottovoce-recall/tests/corpus";

/// Prints a table of its own, and returns the rows with goals.
pub(crate) fn measure(is_trial: bool) -> Result<Vec<Row>, Box<dyn Error>> {
    let carried = Path::new(env!("CARGO_MANIFEST_DIR")).join(CARRIED);
    let utterances = std::fs::read_to_string(carried.join("needs-nothing.txt"))?;
    let mut files = vec![carried.join("conversations.jsonl")];
    match std::env::var_os("RECALL_CORPUS").filter(|_| !is_trial) {
        Some(folder) => files.extend(corpora(Path::new(&folder))?),
        None => println!(
            "SKIPPED: quality on other corpora; name a folder of files *.jsonl by RECALL_CORPUS\n"
        ),
    }
    let (mut cells, mut rows) = (Vec::new(), Vec::new());
    for file in files {
        let conversations = corpus::read(&file)?;
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        for (kind, found) in quality::measure(&conversations, &Weights::default(), false)? {
            let mut line = vec![format!("{name}: {kind}"), found.questions.to_string()];
            line.extend(found.percent().map(|percent| format!("{percent:.1}")));
            cells.push(line);
        }
        let [idle, needed] = needs::measure(&conversations, &utterances)?;
        rows.push(Row::new(
            format!("{name}: utterances that need nothing and bring something in"),
            idle.percent(),
            "%",
            Goal::AtMost(5.),
        ));
        rows.push(Row::new(
            format!("{name}: questions that bring something in"),
            needed.percent(),
            "%",
            Goal::AtLeast(90.),
        ));
    }
    println!("Percent of the messages with the answer that are found:");
    let head = ["kind of question", "questions", "@5", "@50", "in 1,024 tokens", "in 256 tokens"];
    print_table(&head, &cells);
    Ok(rows)
}

fn corpora(folder: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "jsonl") {
            files.push(path);
        }
    }
    files.sort();
    if files.is_empty() {
        return Err(format!("{} holds no files *.jsonl", folder.display()).into());
    }
    Ok(files)
}
