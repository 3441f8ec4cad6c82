use std::os::unix::fs::symlink;

use super::*;
use artifact::{id, listed, said, shown, write};

#[test]
fn a_folder_is_a_list_of_what_is_in_it_without_hidden_entries_and_behind_no_links() {
    let home = Home::new();
    for (name, text) in [("b.rs", "b\nb\n"), ("a/c.md", "c\n"), ("a/empty", ""), (".secret", "s")] {
        write(&home, &format!("src/{name}"), text);
    }
    write(&home, "outside/file", "outside");
    symlink(home.path().join("outside"), home.path().join("src/link")).unwrap();
    let first = said(&home, &["artifact", "add-folder", "src/"]);
    assert_eq!(
        (&first["files"], &first["leftOut"], &first["message"]),
        (&3.into(), &0.into(), &1.into())
    );
    let tree =
        "src/  3 files, 6 B\n  a/\n    c.md  2 B\n    empty  0 B\n  b.rs  4 B\n  link  a link\n";
    assert_eq!(shown(&home, &id(&first)), tree);
    assert_eq!(home.words(), [format!("Added src (folder, 6 lines): artifact://{}", id(&first))]);

    let again = said(&home, &["artifact", "add-folder", "src"]);
    assert_eq!((&again["wasThere"], &again["message"]), (&true.into(), &Value::Null));
    write(&home, "src/b.rs", "changed\n");
    assert_eq!(said(&home, &["artifact", "add-folder", "src"])["wasThere"], false);
    assert_eq!((listed(&home).len(), home.words().len()), (2, 2));
    assert_eq!(
        said(&home, &["artifact", "add-folder", "src/a", "--no-message"])["message"],
        Value::Null
    );
    assert_eq!(code(&home.run(&["verify"])), 0);
}

#[test]
fn of_a_folder_no_more_is_listed_than_the_limit_allows() {
    let home = Home::new();
    for name in ["1", "2", "3/4", "5"] {
        write(&home, &format!("src/{name}"), name);
    }
    let row = said(&home, &["artifact", "add-folder", "src", "--max-files", "3"]);
    assert_eq!((&row["files"], &row["leftOut"]), (&2.into(), &2.into()));
    assert_eq!(shown(&home, &id(&row)), "src/  2 files, 2 B\n  1  1 B\n  2  1 B\n  3/\n");
    let told = home.run(&["artifact", "add-folder", "src/."]);
    assert!(err(&told).contains("listed 4 files, 6 B; 0 left out"), "{}", err(&told));
    for wrong in [["artifact", "add-folder", "src/1"], ["artifact", "add-folder", "nowhere"]] {
        assert_eq!(code(&home.run(&wrong)), 2);
    }
}
