use std::collections::BTreeMap;
use std::os::unix::fs::symlink;

use super::*;
use artifact::{files, id, listed, said, shown, write};

#[test]
fn a_folder_is_its_text_files_and_a_tree_and_only_what_changed_is_added_again() {
    let home = Home::new();
    for (name, text) in
        [("b.rs", "b\nb\n"), ("a/c.md", "c\n"), ("a/empty", ""), ("x.log", "log"), (".secret", "s")]
    {
        write(&home, &format!("src/{name}"), text);
    }
    write(&home, "src/.gitignore", "*.log\n");
    write(&home, "src/logo.png", [137, 80, 0, 1]);
    write(&home, "outside", "outside");
    symlink(home.path().join("outside"), home.path().join("src/link")).unwrap();
    let first = said(&home, &["artifact", "add-folder", "src/"]);
    assert_eq!(
        (&first["added"], &first["same"], &first["folder"]["message"]),
        (&3.into(), &0.into(), &1.into())
    );
    let left: Vec<_> =
        first["leftOut"].as_array().unwrap().iter().map(|left| &left["path"]).collect();
    assert_eq!(left, ["link", "logo.png"]);
    let of: BTreeMap<String, String> = listed(&home)
        .iter()
        .map(|row| (row["name"].as_str().unwrap().to_owned(), id(row)))
        .collect();
    let tree = format!(
        "src/  3 files, 6 B\n  a/\n    c.md  2 B, 1 line  artifact://{}\n    empty  0 B, 0 lines  artifact://{}\n  \
         b.rs  4 B, 2 lines  artifact://{}\n  link  left out: a link, which is not followed\n  \
         logo.png  left out: not text; --binary adds it\n",
        of["a/c.md"], of["a/empty"], of["b.rs"]
    );
    assert_eq!(shown(&home, &of["src"]), tree);
    assert_eq!(home.words(), [format!("Added src (folder, 7 lines): artifact://{}", of["src"])]);

    let again = said(&home, &["artifact", "add-folder", "src"]);
    assert_eq!(
        (&again["added"], &again["same"], &again["folder"]["wasThere"]),
        (&0.into(), &3.into(), &true.into())
    );
    assert_eq!((listed(&home).len(), home.words().len()), (4, 1));

    write(&home, "src/b.rs", "changed\n");
    let third = said(&home, &["artifact", "add-folder", "src"]);
    assert_eq!((&third["added"], &third["same"]), (&1.into(), &2.into()));
    assert_eq!((listed(&home).len(), home.words().len()), (6, 2));
    assert_eq!(code(&home.run(&["verify"])), 0);
}

#[test]
fn a_folder_whose_adding_was_interrupted_goes_on_with_the_same_command() {
    const FILES: u64 = 150;
    let home = Home::new();
    for number in 0..FILES {
        write(&home, &format!("src/{number}"), number.to_string());
    }
    let child = home.spawn(&["artifact", "add-folder", "src"]);
    // By then some files are added, but far from all.
    for _ in 0..1000 {
        if files(&home) > 8 {
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    signal(&child, "-INT");
    let broken_off = ended(child);
    assert_eq!(code(&broken_off), 130, "{}", err(&broken_off));
    let before = listed(&home).len() as u64;
    let told = err(&broken_off);
    assert!(
        told.contains(&format!("{before} file")) && told.contains("cleanup --artifacts"),
        "{told}"
    );
    assert!((1..FILES).contains(&before) && home.words().is_empty(), "{before}");
    assert_eq!(code(&home.run(&["verify"])), 0);
    let row = said(&home, &["artifact", "add-folder", "src"]);
    assert_eq!((&row["added"], &row["same"]), (&(FILES - before).into(), &before.into()));
    assert_eq!((listed(&home).len() as u64, home.words().len()), (FILES + 1, 1));
}

#[test]
fn of_a_folder_no_more_is_taken_than_the_limits_allow() {
    let home = Home::new();
    for (name, size) in [("1", 900), ("2", 2000), ("3", 800), ("4", 300), ("5", 5), ("6", 6)] {
        write(&home, &format!("src/{name}"), name.repeat(size));
    }
    write(&home, "src/7", [0, 1]);
    let limits = ["--max-file-size", "1000", "--max-total", "1500", "--max-files", "3", "--binary"];
    let row = said(&home, &[&["artifact", "add-folder", "src"], &limits[..]].concat());
    let left: Vec<_> = row["leftOut"]
        .as_array()
        .unwrap()
        .iter()
        .map(|left| (left["path"].as_str().unwrap(), left["reason"].as_str().unwrap()))
        .collect();
    assert_eq!(
        left,
        [
            ("2", "1.95 KiB, over the limit of 1000 B"),
            ("3", "800 B, over the limit for all together of 1.46 KiB"),
            ("6", "more than 3 files"),
            ("7", "more than 3 files"),
        ]
    );
    let all = said(&home, &["artifact", "add-folder", "src", "--binary"]);
    assert_eq!((&all["added"], &all["same"]), (&4.into(), &3.into()));
    assert!(shown(&home, &id(&all["folder"])).contains("  7  2 B, binary  artifact://"));
    for wrong in [["artifact", "add-folder", "src/1"], ["artifact", "add-folder", "nowhere"]] {
        assert_eq!(code(&home.run(&wrong)), 2);
    }
}

#[test]
fn neither_the_store_nor_its_key_is_ever_added_with_a_folder() {
    let home = Home::new();
    write(&home, "all/a", "a");
    write(&home, "all/appsettings.json", "{}");
    let run = |arguments: &[&str]| {
        let mut command = home.command(arguments);
        command.env("SOTTOVOCE__CONTEXT__STORAGEROOT", home.path().join("all/store"));
        command.env("SOTTOVOCE__CONTEXT__KEYFILE", home.path().join("all/keys/key"));
        command.current_dir(home.path().join("all"));
        command.output().unwrap()
    };
    assert_eq!(code(&run(&["append", "-r", "user", "hello"])), 0);
    assert_eq!(code(&run(&["artifact", "add-folder", "../all/."])), 0);
    let names = rows(&run(&["artifact", "list", "--json"]));
    let names: Vec<_> = names.iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["a", "../all"]);
}
