//! The owner's page as a command.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;

use super::*;

#[test]
fn the_browser_is_handed_a_private_file_and_no_argument_holds_the_link() {
    let home = Home::new();
    let (bin, temporary) = (home.path().join("bin"), home.path().join("temporary"));
    fs::create_dir(&bin).unwrap();
    fs::create_dir(&temporary).unwrap();
    for opener in ["xdg-open", "open"] {
        let script = "#!/bin/sh\ncp -p \"$1\" \"$HOME/copy\"\nprintf %s \"$1\" >\"$HOME/part\"\nmv \"$HOME/part\" \"$HOME/argument\"\n";
        fs::write(bin.join(opener), script).unwrap();
        fs::set_permissions(bin.join(opener), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let mut command = home.command(&["page", "--open", "--addr", "127.0.0.1:0"]);
    command.env("TMPDIR", &temporary).env("PATH", format!("{}:/usr/bin:/bin", bin.display()));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut link = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut link).unwrap();
    let link = link.trim();
    let (_, key) = link.split_once("key=").unwrap();
    let argument = home.path().join("argument");
    while !argument.exists() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let file = PathBuf::from(fs::read_to_string(&argument).unwrap());
    assert!(!file.to_str().unwrap().contains(key), "{}", file.display());
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
    let page = fs::read_to_string(home.path().join("copy")).unwrap();
    assert!(page.contains(&format!("url={link}\"")) && page.contains("no-referrer"), "{page}");
    signal(&child, "-INT");
    child.wait().unwrap();
    assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0, "the folder is removed");
}
