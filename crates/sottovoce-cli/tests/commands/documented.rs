//! The page of commands, with that of importers, names each command of the program, and none besides.

use std::collections::BTreeSet;

use super::*;

/// The commands of a manual page's name or of the page of commands, their words joined by `-`.
type Commands = BTreeSet<String>;

/// What the program has: each command without commands of its own, and each that also does something by itself.
fn of_the_program() -> (Commands, Commands) {
    let home = Home::new();
    let folder = home.path().join("man");
    assert_eq!(code(&home.run(&["man", folder.to_str().unwrap()])), 0);
    let pages = std::fs::read_dir(folder).unwrap().map(|page| page.unwrap().file_name());
    let names = pages.map(|page| page.into_string().unwrap());
    let all: Commands = names
        .filter_map(|name| Some(name.strip_prefix("sottovoce-")?.strip_suffix(".1")?.to_owned()))
        .collect();
    let has_others = |name: &String| all.iter().any(|other| other.starts_with(&format!("{name}-")));
    let leaves = all.iter().filter(|name| !has_others(name)).cloned().collect();
    (leaves, all)
}

/// What the first columns of the pages' tables say: `a b\|c ARGUMENT` is `a b` and `a c`.
fn of_the_pages() -> Commands {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let read = |name| std::fs::read_to_string(docs.join(name)).unwrap();
    let (commands, importers) = (read("commands.md"), read("importers.md"));
    let commands = commands.split("\n## Options for every command").next().unwrap();
    let page = format!("{commands}\n{importers}").replace("\\|", "/");
    let mut commands = Commands::new();
    for cell in page.lines().filter_map(|line| line.strip_prefix("| `")?.split(" | ").next()) {
        for span in cell.split('`').step_by(2) {
            let is_name = |word: &&str| {
                word.chars().all(|c| c.is_ascii_lowercase() || "-/".contains(c))
                    && !word.starts_with('-')
            };
            let words = span.split_whitespace().take_while(is_name);
            let names = words.fold(vec![String::new()], |names, word| {
                let join = |name: &String, last: &str| match name.as_str() {
                    "" => last.to_owned(),
                    name => format!("{name}-{last}"),
                };
                names.iter().flat_map(|name| word.split('/').map(move |w| join(name, w))).collect()
            });
            commands.extend(names);
        }
    }
    commands
}

#[test]
fn the_pages_name_each_command_of_the_program_and_none_besides() {
    let (leaves, all) = of_the_program();
    let named = of_the_pages();
    let missing: Vec<&String> = leaves.difference(&named).collect();
    assert!(missing.is_empty(), "neither docs/commands.md nor docs/importers.md names {missing:?}");
    // The program hides `man` from its own list.
    let gone: Vec<&String> = named.difference(&all).filter(|name| *name != "man").collect();
    assert!(gone.is_empty(), "docs/commands.md or docs/importers.md names {gone:?}, which is gone");
}
