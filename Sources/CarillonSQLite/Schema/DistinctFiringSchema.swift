/// Adds to throttled firings whether they belong to a distinct item.
enum DistinctFiringSchema {
    static let changes = """
        -- 1 of a firing that replaces no other in the inbox.
        ALTER TABLE held_firing ADD COLUMN is_distinct INTEGER NOT NULL DEFAULT 0;
        """
}
