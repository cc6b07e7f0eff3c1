/// Names the index that a statement uses.
///
/// No statistics are collected. Without them, SQLite prefers the primary key of a table without rowids to a partial index that
/// finds fewer rows. The statements of another store do not need this.
enum IndexHint {
    static func sql(_ index: String) -> String { "INDEXED BY \(index)" }
}
