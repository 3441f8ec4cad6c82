//! The software bill of materials, in CycloneDX' JSON.
#![expect(
    clippy::indexing_slicing,
    reason = "an index of a JSON value finds or inserts, and does not panic"
)]

use serde_json::{Value, json};

use crate::dist::digest::sha256;
use crate::dist::package::Package;
use crate::task::Result;

/// Lists what the binary is made from. The first package named like the command line is the program itself.
pub(crate) fn make(packages: &[Package], binary: &[u8]) -> Result<Vec<u8>> {
    let program = packages.iter().find(|package| package.name == "sottovoce-cli");
    let program = program.ok_or("cargo tree lacks sottovoce-cli")?;
    let rest = packages.iter().filter(|package| package.name != program.name);
    let uses = |package: &Package| {
        let used = package.uses.iter().map(|(name, version)| reference(name, version));
        json!({
            "ref": reference(&package.name, &package.version),
            "dependsOn": used.collect::<Vec<_>>(),
        })
    };
    let mut subject = component(program, "application");
    subject["hashes"] = json!([{"alg": "SHA-256", "content": sha256(binary)}]);
    let bill = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": subject},
        "components": rest.map(|package| component(package, "library")).collect::<Vec<_>>(),
        "dependencies": packages.iter().map(uses).collect::<Vec<_>>(),
    });
    let mut text = serde_json::to_vec_pretty(&bill)?;
    text.push(b'\n');
    Ok(text)
}

fn component(package: &Package, kind: &str) -> Value {
    let name = reference(&package.name, &package.version);
    let mut component = json!({
        "type": kind,
        "bom-ref": name,
        "name": package.name,
        "version": package.version,
    });
    if let Some(licence) = &package.licence {
        // Older crates write a slash for "or".
        component["licenses"] = json!([{"expression": licence.replace('/', " OR ")}]);
    }
    if let Some(checksum) = &package.checksum {
        component["purl"] = name.into();
        component["hashes"] = json!([{"alg": "SHA-256", "content": checksum}]);
    }
    component
}

fn reference(name: &str, version: &str) -> String {
    format!("pkg:cargo/{name}@{version}")
}
