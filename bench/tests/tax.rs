//! The measurement works; its figures are another matter.

use std::process::Command;

#[test]
fn a_quick_tax_has_every_case_on_every_way() -> Result<(), Box<dyn std::error::Error>> {
    let run = Command::new(env!("CARGO_BIN_EXE_bench")).args(["tax", "--quick", "--endpoints", "8"]).output()?;
    let table = String::from_utf8(run.stdout)?;
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    for way in ["direct", "empty filter", "picker", "ext_proc"] {
        let rows: Vec<_> = table.lines().filter(|line| line.contains(&format!("| {way} "))).collect();
        assert_eq!(rows.len(), 6, "three requests, two concurrencies: {way} in\n{table}");
        assert!(rows.iter().all(|row| !row.contains("NaN") && !row.contains("inf")), "{table}");
    }
    Ok(())
}
