//! The imports between the library's source files. Re-exports are followed to the file that defines the item.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A module's path below the crate; empty for the root.
pub(crate) type Module = Vec<String>;

/// One `use`: the path as written, and the name that it gives.
struct Use {
    path: Vec<String>,
    name: String,
}

struct Source {
    /// The code without comments, tests and `use` statements.
    body: String,
    defines: BTreeSet<String>,
    uses: Vec<Use>,
    reexports: Vec<Use>,
}

/// The files of one crate's `src`.
pub(crate) struct Graph {
    sources: BTreeMap<Module, Source>,
}

/// The product's source files below a folder, without `tests` folders and `others`.
pub(crate) fn files(folder: &Path, others: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            if !path.ends_with("tests") {
                found.extend(files(&path, others));
            }
        } else if path.extension().is_some_and(|ending| ending == "rs")
            && !path.ends_with("tests.rs")
            && !others.iter().any(|name| path.ends_with(name))
        {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// A source file's text without comments and without its tests.
pub(crate) fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    let product = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let lines = product.lines().map(|line| match line.trim_start().starts_with("//") {
        true => "",
        false => line.split(" // ").next().unwrap(),
    });
    lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

pub(crate) fn module_of(src: &Path, path: &Path) -> Module {
    let below = path.strip_prefix(src).unwrap().with_extension("");
    let names = below.iter().map(|name| name.to_str().unwrap().to_owned());
    names.filter(|name| name != "lib" && name != "main").collect()
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

/// The names that a file defines at any level.
fn defined(code: &str) -> BTreeSet<String> {
    const KEYWORDS: [&str; 7] = ["fn", "struct", "enum", "trait", "type", "const", "static"];
    let mut names = BTreeSet::new();
    let mut before = "";
    for word in words(code) {
        if KEYWORDS.contains(&before) {
            names.insert(word.to_owned());
        }
        before = word;
    }
    names
}

/// The paths of a `use` tree, its braces expanded.
fn expanded(prefix: &[String], tree: &str, into: &mut Vec<Use>) {
    let tree = tree.trim();
    let (mut depth, mut start) = (0, 0);
    let mut parts = Vec::new();
    for (at, c) in tree.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&tree[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.extend(Some(&tree[start..]).filter(|last| !last.trim().is_empty()));
    if parts.len() != 1 {
        parts.into_iter().for_each(|part| expanded(prefix, part, into));
        return;
    }
    let tree = parts[0].trim();
    let split = |path: &str| -> Vec<String> {
        let names = path.split("::").map(str::trim).filter(|name| !name.is_empty());
        prefix.iter().cloned().chain(names.map(str::to_owned)).collect()
    };
    if let Some((path, inner)) = tree.split_once('{') {
        expanded(&split(path), inner.strip_suffix('}').unwrap(), into);
        return;
    }
    let (path, alias) = tree.split_once(" as ").unwrap_or((tree, ""));
    let mut path = split(path);
    if path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    let Some(last) = path.last().cloned() else { return };
    let name = if alias.is_empty() { last } else { alias.trim().to_owned() };
    into.push(Use { path, name });
}

impl Source {
    fn read(path: &Path) -> Self {
        let code = code(path);
        let (mut body, mut uses, mut reexports) = (String::new(), Vec::new(), Vec::new());
        let mut lines = code.lines();
        while let Some(line) = lines.next() {
            let plain = line.trim_start();
            let is_public = plain.starts_with("pub");
            let statement = match plain.split_once("use ") {
                Some((before, tree)) if before.is_empty() || is_public && !before.contains('"') => {
                    let is_path = before.is_empty() || before.trim_end().ends_with(['b', ')']);
                    is_path.then_some(tree)
                }
                _ => None,
            };
            let Some(first) = statement else {
                body.push_str(line);
                body.push('\n');
                continue;
            };
            let mut tree = first.to_owned();
            while !tree.contains(';') {
                tree.push(' ');
                tree.push_str(lines.next().unwrap());
            }
            let tree = tree.split(';').next().unwrap();
            expanded(&[], tree, if is_public { &mut reexports } else { &mut uses });
        }
        Self { defines: defined(&body), body, uses, reexports }
    }
}

impl Graph {
    pub(crate) fn read(src: &Path, others: &[&str]) -> Self {
        let sources = files(src, others);
        let read = |path: &PathBuf| (module_of(src, path), Source::read(path));
        Self { sources: sources.iter().map(read).collect() }
    }

    /// A path as seen from a module, as one below the crate; `None` for other crates' items.
    fn absolute(&self, from: &Module, path: &[String]) -> Option<Module> {
        let first = path.first()?;
        match first.as_str() {
            "crate" => Some(path[1..].to_vec()),
            "self" | "super" => {
                let (mut base, mut rest) = (from.clone(), path);
                while let Some(step) =
                    rest.first().filter(|step| ["self", "super"].contains(&step.as_str()))
                {
                    if step == "super" {
                        base.pop();
                    }
                    rest = &rest[1..];
                }
                base.extend_from_slice(rest);
                Some(base)
            }
            child => {
                let mut module = from.clone();
                module.push(child.to_owned());
                self.sources.contains_key(&module).then(|| {
                    module.extend_from_slice(&path[1..]);
                    module
                })
            }
        }
    }

    /// The file that defines what a path below the crate names.
    fn owner(&self, path: &[String], depth: usize) -> Option<Module> {
        if depth > 12 {
            return None;
        }
        let known = (0..=path.len()).rev().find(|end| self.sources.contains_key(&path[..*end]))?;
        let (module, rest) = (path[..known].to_vec(), &path[known..]);
        let Some(item) = rest.first() else { return Some(module) };
        let source = &self.sources[&module];
        if source.defines.contains(item) {
            return Some(module);
        }
        for used in source.reexports.iter().chain(&source.uses) {
            let goes_on = used.name == *item;
            if goes_on || used.name == "*" {
                let mut path = self.absolute(&module, &used.path)?;
                if used.name == "*" {
                    path.pop();
                    path.push(item.clone());
                }
                path.extend_from_slice(&rest[1..]);
                if let Some(owner) = self.owner(&path, depth + 1)
                    && (goes_on || self.sources[&owner].defines.contains(item))
                {
                    return Some(owner);
                }
            }
        }
        Some(module)
    }

    /// For each file the files that it uses.
    pub(crate) fn edges(&self) -> BTreeMap<Module, BTreeSet<Module>> {
        let mut edges = BTreeMap::new();
        for (module, source) in &self.sources {
            let mut used: BTreeSet<Module> = BTreeSet::new();
            let mut add = |path: &[String]| {
                let owner = self.absolute(module, path).and_then(|path| self.owner(&path, 0));
                used.extend(owner.filter(|owner| owner != module));
            };
            source.uses.iter().for_each(|used| add(&used.path));
            // A re-export alone is not a dependency.
            let named: BTreeSet<&str> = words(&source.body).collect();
            let reexports =
                source.reexports.iter().filter(|used| named.contains(used.name.as_str()));
            reexports.for_each(|used| add(&used.path));
            for path in paths(&source.body) {
                add(&path);
            }
            edges.insert(module.clone(), used);
        }
        edges
    }
}

/// The paths of more than one name in code.
fn paths(body: &str) -> Vec<Vec<String>> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let runs = body.split(|c: char| !is_part(c)).filter(|run| run.contains("::"));
    let names =
        |run: &str| run.split("::").filter(|name| !name.is_empty()).map(str::to_owned).collect();
    runs.filter(|run| !run.starts_with(':'))
        .map(names)
        .filter(|path: &Vec<_>| path.len() > 1)
        .collect()
}

/// The import cycles: sets of files that all use each other, directly or indirectly.
pub(crate) fn circles(edges: &BTreeMap<Module, BTreeSet<Module>>) -> Vec<BTreeSet<Module>> {
    let reach = |from: &Module| {
        let (mut seen, mut next) = (BTreeSet::new(), vec![from.clone()]);
        while let Some(module) = next.pop() {
            for used in edges.get(&module).into_iter().flatten() {
                if seen.insert(used.clone()) {
                    next.push(used.clone());
                }
            }
        }
        seen
    };
    let reached: BTreeMap<&Module, BTreeSet<Module>> =
        edges.keys().map(|module| (module, reach(module))).collect();
    let mut circles: BTreeSet<BTreeSet<Module>> = BTreeSet::new();
    for (module, reached_from) in &reached {
        let circle: BTreeSet<Module> = reached_from
            .iter()
            .filter(|other| reached.get(other).is_some_and(|back| back.contains(*module)))
            .cloned()
            .collect();
        if circle.len() > 1 {
            circles.insert(circle);
        }
    }
    circles.into_iter().collect()
}
