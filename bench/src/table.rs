//! Tables in Markdown.

use comfy_table::{CellAlignment, Table, presets};

/// A table with numbers in all columns from `numbers` on.
pub(crate) fn markdown(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>, numbers: usize) -> Table {
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN).set_header(header);
    table.add_rows(rows);
    table.column_iter_mut().skip(numbers).for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    table
}
